-- Replace the key of a survey's periods, if it is the one that the caller has read. KEYS[1] the survey's state; ARGV[1]
-- the first period whose key is stored, as the caller has read it (empty: none), ARGV[2] and ARGV[3] the period and its
-- sealed key to store, ARGV[4] 1 if the caller opens the survey: then a state that has periods and no such field was
-- begun by a release that drew everything from the fleet's key.
-- Returns the first period and its sealed key that are stored now.
local first = redis.call('HGET', KEYS[1], 'first') or ''
if first == '' and ARGV[4] == '1' and redis.call('HEXISTS', KEYS[1], 'newest') == 1 then return {'fleet', ''} end
if first ~= ARGV[1] then return {first, redis.call('HGET', KEYS[1], 'key') or ''} end
redis.call('HSET', KEYS[1], 'first', ARGV[2], 'key', ARGV[3])
return {ARGV[2], ARGV[3]}
