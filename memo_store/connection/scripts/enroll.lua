-- Write to a fleet's roll, if it is still the one the caller knows. KEYS[2] roll; ARGV[3] the version the caller has
-- read (empty: none), ARGV[4] the one it writes, ARGV[5] whether it takes the place of all that is there (1) or not,
-- ARGV[6..] fields and values. Writing the same version twice is harmless.
-- Returns, after `writes`, the version that is there now.
local known = redis.call('HGET', KEYS[2], 'version') or ''
if known ~= ARGV[3] and known ~= ARGV[4] then return {writes, known} end
if ARGV[5] == '1' then redis.call('UNLINK', KEYS[2]) end
redis.call('HSET', KEYS[2], 'version', ARGV[4], unpack(ARGV, 6))
return {writes, ARGV[4]}
