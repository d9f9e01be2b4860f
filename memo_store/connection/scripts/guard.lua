-- The beginning of every script that writes: return {-1} and write nothing if the shard has lost data.
-- KEYS[1] the shard's epoch record; ARGV[1] the epoch and ARGV[2] the number of writes that the caller knows.
-- Another epoch, or none: the shard was emptied. Fewer writes: it went back in time.
local epoch = redis.call('HMGET', KEYS[1], 'epoch', 'writes')
if epoch[1] ~= ARGV[1] or tonumber(epoch[2]) < tonumber(ARGV[2]) then return {-1} end
local writes = redis.call('HINCRBY', KEYS[1], 'writes', 1)

local SLICE = 4000 -- unpack() takes fewer than 8000 values

local function records(key, fields, width)
  -- The records of the devices whose pseudonyms are concatenated in `fields`; false where there is none.
  local names, found = {}, {}
  for i = 1, #fields, width do names[#names + 1] = fields:sub(i, i + width - 1) end
  for i = 1, #names, SLICE do
    local part = redis.call('HMGET', key, unpack(names, i, math.min(i + SLICE - 1, #names)))
    for j = 1, #part do found[i + j - 1] = part[j] end
  end
  return names, found
end

local function write(key, pairs)
  for i = 1, #pairs, SLICE do
    redis.call('HSET', key, unpack(pairs, i, math.min(i + SLICE - 1, #pairs)))
  end
end
