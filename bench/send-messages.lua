-- wrk: POST /v1/messages, or /v1/messages/batch, each message to a different recipient.
-- Arguments: file with a message as JSON in which 000000000000 is a placeholder for the recipient, file with
-- "secret domain" of each sender, number of senders, messages per request (0: not a batch).

local pieces, senders, count, mails = {}, {}, 0, 0
local sent = 0

function init(args)
  local message = io.open(args[1]):read("*a")
  for line in io.lines(args[2]) do
    local secret, domain = line:match("(%S+) (%S+)")
    senders[#senders + 1] = { headers = { ["Authorization"] = "Bearer " .. secret,
      ["Content-Type"] = "application/json" }, mail = message:gsub("sender.invalid", domain) }
  end
  count, mails = tonumber(args[3]), tonumber(args[4])
end

local function mail(sender)
  sent = sent + 1
  return (sender.mail:gsub("000000000000", string.format("%012d", sent), 1))
end

function request()
  local sender = senders[sent % count + 1]
  if mails == 0 then return wrk.format("POST", "/v1/messages", sender.headers, mail(sender)) end
  sender = senders[(sent / mails) % count + 1]
  local list = {}
  for place = 1, mails do list[place] = mail(sender) end
  return wrk.format("POST", "/v1/messages/batch", sender.headers, '{"messages":[' .. table.concat(list, ",") .. "]}")
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  print(string.format("result %d %d %d %d %d", summary.requests, failed, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
