-- Advance a survey's watermark to a period. KEYS[1] its state, KEYS[2] its open periods, KEYS[3] the periods in which
-- presence was lost; ARGV[1] period, ARGV[2] the last period that is closed by now, ARGV[3] 1 if time is what the
-- source says: then a period that was closed before stays closed.
-- Returns the periods in which presence was lost, the last closed period, and the periods this closes.
-- The first period ever counts as lost: nothing is known of presence before it.
if redis.call('SCARD', KEYS[3]) == 0 then redis.call('SADD', KEYS[3], ARGV[1]) end
local newest = tonumber(redis.call('HGET', KEYS[1], 'newest') or -1)
if tonumber(ARGV[1]) > newest then
  newest = tonumber(ARGV[1])
  redis.call('HSET', KEYS[1], 'newest', newest)
end
local closed = tonumber(ARGV[2])
if ARGV[3] == '1' then
  closed = math.max(closed, tonumber(redis.call('HGET', KEYS[1], 'closed') or closed))
  redis.call('HSET', KEYS[1], 'closed', closed)
end
if tonumber(ARGV[1]) > closed then redis.call('SADD', KEYS[2], ARGV[1]) end
local reply = {redis.call('SMEMBERS', KEYS[3]), closed}
for _, open in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if tonumber(open) <= closed then reply[#reply + 1] = tonumber(open) end
end
return reply
