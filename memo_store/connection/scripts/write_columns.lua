-- Write a fleet's presence, if it still has the version that the caller has read.
-- `key` is where it is; `version` the one the caller has read (empty: none), `following` the one it writes, and then
-- fields and values. Idempotent: writing a version again changes nothing.
-- Returns the version that is stored now.
local function work(key, version, following, ...)
  local known = redis.call('HGET', key, 'version') or ''
  if known ~= version and known ~= following then return {known} end
  redis.call('HSET', key, 'version', following, ...)
  return {following}
end
return {writes, work(KEYS[2], unpack(ARGV, 3))}
