-- Write a fleet's presence columns, if they still have the version that the caller has read.
-- `key` is the columns; `version` the one the caller has read (empty: none), `following` the one it writes, `rewrite` 1 to
-- delete all other fields first, and then fields and values. Idempotent: writing a version again changes nothing.
-- Returns the version that is stored now.
local function work(key, version, following, rewrite, ...)
  local known = redis.call('HGET', key, 'version') or ''
  if known ~= version and known ~= following then return {known} end
  if rewrite == '1' then redis.call('UNLINK', key) end
  redis.call('HSET', key, 'version', following, ...)
  return {following}
end

