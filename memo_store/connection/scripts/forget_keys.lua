-- Note that the keys of a survey's periods before one are forgotten. KEYS[1] the survey's state, ARGV[1] that period.
-- What their keys were checked against is removed.
local kept = tonumber(redis.call('HGET', KEYS[1], 'kept') or 0)
if tonumber(ARGV[1]) <= kept then return kept end
redis.call('HSET', KEYS[1], 'kept', ARGV[1])
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  local period = tonumber(string.match(name, '^check (%d+)$'))
  if period and period < tonumber(ARGV[1]) then redis.call('HDEL', KEYS[1], name) end
end
return tonumber(ARGV[1])
