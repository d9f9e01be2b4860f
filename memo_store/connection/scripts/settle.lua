-- Append to a period's journal, if the caller has read it to its end; otherwise return what it has not read.
-- KEYS[2] journal; ARGV[3] how far the caller has read, ARGV[4] what to append. Entries have 16 bytes.
local size, read = redis.call('STRLEN', KEYS[2]), tonumber(ARGV[3])
if size < read or size % 16 ~= 0 then return {writes, false} end -- the period is over, and its journal gone
if size > read then return {writes, redis.call('GETRANGE', KEYS[2], read, -1)} end
redis.call('APPEND', KEYS[2], ARGV[4])
return {writes, ''}
