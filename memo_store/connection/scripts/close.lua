-- Replace the commits of closed periods by a mark, which stays for a while.
-- KEYS the strings of all attributes on one shard; ARGV[1] the mark, ARGV[2] for how many seconds it stays.
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'EX', ARGV[2]) end
