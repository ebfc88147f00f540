-- Sends one kind of request repeatedly and prints the result as one line of JSON.
-- Arguments: a file with the body, or nothing for a GET.
-- The headers equal those of the official OpenAI client for Python.

function init(args)
  local path = args[1]
  wrk.headers["Host"] = "127.0.0.1:8000"
  wrk.headers["Accept"] = "application/json"
  wrk.headers["Accept-Encoding"] = "gzip, deflate"
  wrk.headers["Connection"] = "keep-alive"
  wrk.headers["User-Agent"] = "OpenAI/Python 1.99.1"
  wrk.headers["Authorization"] = "Bearer sk-example-0123456789abcdef0123456789abcdef"
  if path then
    local file = assert(io.open(path, "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    file:close()
    wrk.headers["Content-Type"] = "application/json"
    wrk.headers["X-Stainless-Lang"] = "python"
    wrk.headers["X-Stainless-Package-Version"] = "1.99.1"
    wrk.headers["X-Stainless-OS"] = "Linux"
    wrk.headers["X-Stainless-Arch"] = "x64"
    wrk.headers["X-Stainless-Runtime"] = "CPython"
    wrk.headers["X-Stainless-Runtime-Version"] = "3.12.4"
    wrk.headers["X-Stainless-Async"] = "async:asyncio"
    wrk.headers["X-Stainless-Retry-Count"] = "0"
    wrk.headers["X-Stainless-Read-Timeout"] = "600"
  end
  -- wrk calls `wrk.request` once. A global function named `request` would be called for each request.
  local text = wrk.format()
  wrk.request = function() return text end
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"micros":%d,"p50Micros":%d,"p99Micros":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
