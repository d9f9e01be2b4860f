-- Append commits to a period's string, if the caller has read it to its end; otherwise return what it has not read.
-- `key` is the string; `read` says how many bytes the caller has read, `text` is to be appended (empty: only read on). A
-- commit has 16 bytes.
-- Returns the unread bytes (empty: appended), or nil if the period is closed: then the string is gone, or a mark that is
-- no commit has replaced it.
local function work(key, read, text)
  local size = redis.call('STRLEN', key)
  read = tonumber(read)
  if size < read or size % 16 ~= 0 then return {false} end
  if size > read then return {redis.call('GETRANGE', key, read, -1)} end
  if #text > 0 then redis.call('APPEND', key, text) end
  return {''}
end
return {writes, work(KEYS[2], unpack(ARGV, 3))}
