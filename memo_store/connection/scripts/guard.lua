-- Begins every script: refuses to write to a shard that is not the one the caller knows.
-- KEYS[1] the shard's epoch record; ARGV[1] its epoch and ARGV[2] how many writes of it the caller knows of.
-- A shard with another epoch, or none, was emptied; one with fewer writes went back in time.
local past = redis.call('HMGET', KEYS[1], 'epoch', 'writes')
if past[1] ~= ARGV[1] or tonumber(past[2]) < tonumber(ARGV[2]) then return {-1} end
local writes = redis.call('HINCRBY', KEYS[1], 'writes', 1)

local SLICE = 4000 -- unpack() takes fewer than 8000 values

local function records(key, fields, width)
  -- The records of the devices whose pseudonyms are strung together in `fields`; false where there is none.
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
