-- Note where the keys of a survey's periods are, unless another process has noted something else meanwhile. KEYS[1] the
-- survey's state; ARGV[1] and ARGV[2] what the caller has read of the fields `first` and `newest` (empty: nothing),
-- ARGV[3] and ARGV[4] what is noted, ARGV[5] 1 if the caller opens the survey: then a state that has periods and no note
-- was begun by a release that drew everything from the fleet's key.
-- A key that release 0.2 has stored is removed: the caller has taken it over.
-- Returns what is noted then.
local first = redis.call('HGET', KEYS[1], 'first') or ''
local newest = redis.call('HGET', KEYS[1], 'newest') or ''
if first == '' and newest ~= '' and ARGV[5] == '1' then return {'fleet', '', newest, '', ''} end
if first == ARGV[1] and (first == '' or newest == ARGV[2]) then
  redis.call('HSET', KEYS[1], 'first', ARGV[3], 'drawer', ARGV[4])
  redis.call('HDEL', KEYS[1], 'key')
end
return redis.call('HMGET', KEYS[1], 'first', 'drawer', 'newest', 'key', 'kept')
