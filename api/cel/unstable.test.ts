import { expect, test } from '@jest/globals'
import { findUnstable } from './program.ts'

test.each([
  ['uuid()', ['uuid()']],
  ['llmRequest.messages + [{"role": "system", "content": "It is " + string(request.startTime)}]', ['request.startTime']],
  ['request.headers["X-Request-Id"] + string(random())', ['request.headers["X-Request-Id"]', 'random()']],
  ['has(jwt.sub) ? request.headers.traceparent : ""', ['request.headers.traceparent']],
  ['llmRequest.messages.map(m, {"role": m.role, "content": [uuid()]})', ['uuid()']],
  ['{"a": source.port}', ['source.port']],
  ['[llmRequest.messages[0]] + [{"role": "user", "content": jwt.sub + request.headers["x-team"]}]', []],
  ['"uuid() request.startTime"', []],
  ['broken(', []],
])('%s has %j', (source, found) => expect(findUnstable(source)).toEqual(found))
