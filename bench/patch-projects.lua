-- wrk: PATCH /v1/admin/projects/{id} with a new name each time.
-- Arguments: token, first project id, number of projects, a tag unique to the run.

local token, first, count, tag
local sent = 0

function init(args)
  token, first, count, tag = args[1], tonumber(args[2]), tonumber(args[3]), args[4]
  wrk.headers["Authorization"] = "Bearer " .. token
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  sent = sent + 1
  -- In turn, so concurrent requests edit different projects if there are enough of them.
  local project = first + sent % count
  local body = string.format('{"name":"Bench %s %d"}', tag, sent)
  return wrk.format("PATCH", "/v1/admin/projects/" .. project, nil, body)
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  print(string.format("result %d %d %d %d %d", summary.requests, failed, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
