-- Record that reports of a period were delivered. A record is the last period and the number of reports, 4 bytes each.
-- `key` is the table, `fields` are pseudonyms of a width.
-- Idempotent, and a period before the last one changes nothing.
local function work(key, fields, width, period)
  period = tonumber(period)
  local names, count = split(fields, tonumber(width))
  local changes, changed = {}, 0
  local found = records(key, names, count)
  local after = {[false] = struct.pack('<I4I4', period, 1)} -- what follows a record: many devices have the same one
  for row = 1, count do
    local record = found[row]
    local following = after[record]
    if following == nil then
      local last, reports = struct.unpack('<I4I4', record)
      following = last < period and struct.pack('<I4I4', period, reports + 1)
      after[record] = following
    end
    if following then
      changes[changed + 1], changes[changed + 2] = names[row], following
      changed = changed + 2
    end
  end
  write(key, changes, changed)
  return {}
end
return {writes, work(KEYS[2], unpack(ARGV, 3))}
