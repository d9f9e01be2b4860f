-- The end of every script that writes: its work on each key.
-- ARGV[3..] for each of KEYS[2..] how many arguments follow, and these. Returns `writes`, then what each work returned.
local reply, at = {writes}, 3
for place = 2, #KEYS do
  local last = at + tonumber(ARGV[at])
  reply[place] = work(KEYS[place], unpack(ARGV, at + 1, last))
  at = last + 1
end
return reply
