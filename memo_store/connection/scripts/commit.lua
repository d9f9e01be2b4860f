-- Append commits to a period's string, if the caller has read it to its end; otherwise return what it has not read.
-- KEYS[2] the string; ARGV[3] how many bytes the caller has read, ARGV[4] what to append (empty: only read on). A commit
-- has 16 bytes.
-- Returns, after `writes`, the unread bytes (empty: appended), or nil if the period is closed: then the string is gone,
-- or a mark that is no commit has replaced it.
local size, read = redis.call('STRLEN', KEYS[2]), tonumber(ARGV[3])
if size < read or size % 16 ~= 0 then return {writes, false} end
if size > read then return {writes, redis.call('GETRANGE', KEYS[2], read, -1)} end
if #ARGV[4] > 0 then redis.call('APPEND', KEYS[2], ARGV[4]) end
return {writes, ''}
