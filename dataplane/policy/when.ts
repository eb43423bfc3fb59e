import { withSides, type Policy } from '../request/exchange/context.ts'
import { checkA2a, readsA2a } from '../request/expression/a2a.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../request/expression/buffer.ts'
import { compileCondition, type Condition, type OnFailure } from '../request/expression/condition.ts'
import { needsRequestBody, parsesJson } from '../request/expression/program.ts'
import { ExchangeView } from '../request/expression/view.ts'

/** Left by the request side of a section whose condition was not true, so that its response side does not run either. */
const SKIPPED = Symbol('skipped')

/**
 * Runs a policy only for requests for which the expression `when` of its section is true (traffic.md §3). It is evaluated once, on the request side;
 * if it reads the body, the request is buffered first. Without a condition, the result is the policy itself.
 *
 * @throws ProxyError A2A_METHOD (400), BODY_TOO_LARGE (413) if the expression reads `a2a` and the method cannot be known.
 */
export function runWhen(when: string | undefined, onFailure: OnFailure, maxBufferBytes: number | undefined, policy: Policy): Policy {
  if (when === undefined) return policy
  const { sides } = policy
  const condition = compileCondition(when, onFailure)
  if (needsRequestBody([condition.program])) return runWithBody(policy, condition, maxBufferBytes)
  if (sides === undefined) return (c, next) => (condition.holds(new ExchangeView(c.var.exchange)) ? policy(c, next) : next())
  return withSides<unknown>({
    request: (exchange) => (condition.holds(new ExchangeView(exchange)) ? sides.request?.(exchange) : SKIPPED),
    response(exchange, left) {
      if (left !== SKIPPED) sides.response?.(exchange, left)
    },
  })
}

function runWithBody(policy: Policy, { program, holds }: Condition, maxBufferBytes = MAX_BUFFER_BYTES): Policy {
  const [parses, checksA2a] = [parsesJson([program]), readsA2a([program])]
  return async (c, next) => {
    const { exchange } = c.var
    await bufferRequest(exchange, maxBufferBytes, parses)
    try {
      if (checksA2a) checkA2a(exchange)
      return await (holds(new ExchangeView(exchange)) ? policy(c, next) : next())
    } finally {
      releaseRequest(exchange)
    }
  }
}
