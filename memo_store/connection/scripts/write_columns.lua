-- Write a fleet's presence columns, if they still have the version that the caller has read.
-- KEYS[2] the columns; ARGV[3] the version the caller has read (empty: none), ARGV[4] the version it writes, ARGV[5] 1 to
-- delete all other fields first, ARGV[6..] fields and values. Idempotent: writing a version again changes nothing.
-- Returns, after `writes`, the version that is stored now.
local known = redis.call('HGET', KEYS[2], 'version') or ''
if known ~= ARGV[3] and known ~= ARGV[4] then return {writes, known} end
if ARGV[5] == '1' then redis.call('UNLINK', KEYS[2]) end
redis.call('HSET', KEYS[2], 'version', ARGV[4], unpack(ARGV, 6))
return {writes, ARGV[4]}
