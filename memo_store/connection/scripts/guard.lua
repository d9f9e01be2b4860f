-- The beginning of every script that writes: return {-1} and write nothing if the shard has lost data.
-- KEYS[1] the shard's epoch record; ARGV[1] the epoch and ARGV[2] the number of writes that the caller knows.
-- What follows is a function, `work`, of KEYS[2] and ARGV[3..]. Scripts return `writes`, and what it returns.
-- Another epoch, or none: the shard was emptied. Fewer writes: it went back in time.
local epoch = redis.call('HMGET', KEYS[1], 'epoch', 'writes')
if epoch[1] ~= ARGV[1] or tonumber(epoch[2]) < tonumber(ARGV[2]) then return {-1} end
local writes = redis.call('HINCRBY', KEYS[1], 'writes', 1)

local SLICE = 4000 -- unpack() takes fewer than 8000 values
local sub, min = string.sub, math.min
-- Places in tables are counted, because `#` searches for the end every time.

local function split(fields, width)
  -- The pseudonyms that are concatenated in `fields`, and how many they are.
  local names, count = {}, 0
  for i = 1, #fields, width do
    count = count + 1
    names[count] = sub(fields, i, i + width - 1)
  end
  return names, count
end

local function records(key, names, count)
  -- The records of these devices, false where there is none.
  if count <= SLICE then return redis.call('HMGET', key, unpack(names)) end
  local found = {}
  for i = 1, count, SLICE do
    local part = redis.call('HMGET', key, unpack(names, i, min(i + SLICE - 1, count)))
    for j = 1, #part do found[i + j - 1] = part[j] end
  end
  return found
end

local function write(key, pairs, count)
  for i = 1, count, SLICE do
    redis.call('HSET', key, unpack(pairs, i, min(i + SLICE - 1, count)))
  end
end
