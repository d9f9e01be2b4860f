-- Get or create memos. A record holds a device's entries in the order they were created: tag (8 bytes), sealed memo.
-- Its length is the ledger. A device whose record is full holds its last entry for good, whatever is proposed.
-- KEYS[2] table; ARGV[3] pseudonyms, ARGV[4] their width, ARGV[5] proposed entries, ARGV[6] their width,
-- ARGV[7] cap (0: none). Returns, after `writes`, (row, entry) for each row where another entry than the proposal counts.
local width, cap = tonumber(ARGV[6]), tonumber(ARGV[7])
local names, found = records(KEYS[2], ARGV[3], tonumber(ARGV[4]))
local reply, changes = {writes}, {}
for row = 1, #names do
  local record = found[row] or ''
  local proposal = ARGV[5]:sub((row - 1) * width + 1, row * width)
  local tag, winner = proposal:sub(1, 8), nil
  if cap > 0 and #record >= cap * width then
    winner = record:sub(-width)
  else
    for i = 1, #record, width do
      if record:sub(i, i + 7) == tag then winner = record:sub(i, i + width - 1) end
    end
  end
  if not winner then
    changes[#changes + 1] = names[row]
    changes[#changes + 1] = record .. proposal
  elseif winner ~= proposal then
    reply[#reply + 1] = row - 1
    reply[#reply + 1] = winner
  end
end
write(KEYS[2], changes)
return reply
