-- Get or create memos. A record holds a device's entries in the order they were created: tag (8 bytes), sealed memo.
-- Its length is the ledger. A device whose record is full holds its last entry for good, whatever is proposed.
-- `key` is the table, `fields` are pseudonyms of a width, `proposals` entries of another; a `cap` of 0: none.
-- Returns the entries that count, one for each row, as one string.
local function work(key, fields, field_width, proposals, entry_width, cap)
  local width = tonumber(entry_width)
  cap = tonumber(cap)
  local names, count = split(fields, tonumber(field_width))
  local found = records(key, names, count)
  local counting, changes, changed = {}, {}, 0
  for row = 1, count do
    local record, proposal, winner = found[row], sub(proposals, (row - 1) * width + 1, row * width), nil
    if not record then
      record = ''
    elseif cap > 0 and #record >= cap * width then
      winner = sub(record, -width)
    else
      local tag = sub(proposal, 1, 8)
      for i = 1, #record, width do
        if sub(record, i, i + 7) == tag then winner = sub(record, i, i + width - 1) end
      end
    end
    if not winner then
      changes[changed + 1], changes[changed + 2] = names[row], record .. proposal
      changed = changed + 2
    end
    counting[row] = winner or proposal
  end
  write(key, changes, changed)
  return table.concat(counting)
end
return {writes, work(KEYS[2], unpack(ARGV, 3))}
