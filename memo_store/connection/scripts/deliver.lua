-- Record that reports of a period were delivered. A record is the last period and the number of reports, 4 bytes each.
-- KEYS[2] table; ARGV[3] pseudonyms, ARGV[4] their width, ARGV[5] period.
-- Idempotent, and a period before the last one changes nothing.
local period = tonumber(ARGV[5])
local names, found = records(KEYS[2], ARGV[3], tonumber(ARGV[4]))
local changes = {}
for row = 1, #names do
  local last, reports = -1, 0
  if found[row] then last, reports = struct.unpack('<I4I4', found[row]) end
  if last < period then
    changes[#changes + 1] = names[row]
    changes[#changes + 1] = struct.pack('<I4I4', period, reports + 1)
  end
end
write(KEYS[2], changes)
return {writes}
