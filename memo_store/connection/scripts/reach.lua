-- A survey reaches a period. KEYS[1] its state, KEYS[2] its open periods, KEYS[3] those in which presence was lost;
-- ARGV[1] period, ARGV[2] by how many periods a period is over before the newest one, or ARGV[3] the last one that is over.
-- Returns in which periods presence was lost (the first one ever reached counts: nothing is known before it), the last
-- period that is over, and the open periods that are.
if redis.call('SCARD', KEYS[3]) == 0 then redis.call('SADD', KEYS[3], ARGV[1]) end
local newest = tonumber(redis.call('HGET', KEYS[1], 'newest') or -1)
if tonumber(ARGV[1]) > newest then
  newest = tonumber(ARGV[1])
  redis.call('HSET', KEYS[1], 'newest', newest)
end
local over = tonumber(ARGV[3]) or newest - tonumber(ARGV[2])
if tonumber(ARGV[1]) > over then redis.call('SADD', KEYS[2], ARGV[1]) end
local reply = {redis.call('SMEMBERS', KEYS[3]), over}
for _, open in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if tonumber(open) <= over then reply[#reply + 1] = tonumber(open) end
end
return reply
