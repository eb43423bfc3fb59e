import { evalBool } from '#api/cel/index.ts'
import type { ReplacedResponse, ResponseMatch, ResponseOverride, ResponseRedirect } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { isNullBodyStatus } from '../../request/exchange/answer.ts'
import { isGrpcRequest } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { defineSlot } from '../../request/exchange/slot.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { BufferBody } from '../../http/body.ts'
import { describeNewBody } from '../../http/coding.ts'
import type { ResponseHead } from '../../http/message.ts'

type Matcher = (exchange: Exchange, response: ResponseHead) => boolean
type Replacer = (response: ResponseHead) => void

/** Set once a rule of one phase has applied: the rules of the other phase are for responses that none replaced. */
const replaced = defineSlot<true>('responseOverride', { isForked: false })

/**
 * Replaces responses of the upstream and of the gateway by their status, headers or a condition (traffic.md §8.17). The first rule that matches
 * applies. gRPC responses and upgrades stay as they are.
 *
 * @example
 * traffic:
 *   responseOverride:
 *     rules:
 *       - match: { statusCodes: [502-504] }
 *         response: { contentType: text/html, body: '<h1>Back soon</h1>' }
 */
export function compileResponseOverride({ rules }: ResponseOverride): Policy {
  const compiled = rules.map(({ match, response, redirect }) => ({
    matches: compileMatch(match),
    replace: redirect === undefined ? compileReplacement(response ?? {}) : compileRedirect(redirect),
  }))
  return withSides({
    response(exchange: Exchange) {
      const { response, request } = exchange
      if (response === undefined || response.upgraded !== undefined || response.status < 200) return
      if (replaced.get(exchange) === true || isGrpcRequest(request)) return
      const rule = compiled.find(({ matches }) => matches(exchange, response))
      if (rule === undefined) return
      replaced.set(exchange, true)
      rule.replace(response)
    },
  })
}

function compileMatch({ statusCodes, headers = [], condition }: ResponseMatch): Matcher {
  const ranges = statusCodes?.map((text) => {
    const [from = '', to = from] = text.split('-')
    return [Number(from), Number(to)] as const
  })
  const names = headers.map(({ name, value }) => ({ name: name.toLowerCase(), value }))
  const program = condition === undefined ? undefined : compileExpression(condition, 'response')
  return (exchange, response) =>
    (ranges === undefined || ranges.some(([from, to]) => response.status >= from && response.status <= to)) &&
    names.every(({ name, value }) => (value === undefined ? response.headers.has(name) : response.headers.getAll(name).includes(value))) &&
    (program === undefined || evalBool(program, new ExchangeView(exchange)))
}

function compileReplacement({ status, contentType = 'text/plain; charset=utf-8', body, bodyRef, headers = [] }: ReplacedResponse): Replacer {
  const text = body ?? bodyRef?.text ?? ''
  const bytes = Buffer.from(text)
  const fields = headers.map(({ name, value }) => [name.toLowerCase(), value] as const)
  return (response) => {
    setBody(response, status ?? response.status, bytes, contentType)
    for (const [name, value] of fields) response.headers.set(name, value)
  }
}

function compileRedirect({ location, status = 302 }: ResponseRedirect): Replacer {
  const nothing = Buffer.alloc(0)
  return (response) => {
    setBody(response, status, nothing, '')
    response.headers.set('location', location)
  }
}

function setBody(response: ResponseHead, status: number, bytes: Buffer, contentType: string): void {
  const { headers } = response
  response.body?.cancel()
  describeNewBody(headers)
  for (const name of contentFields) headers.remove(name)
  response.status = status
  response.body = bytes.length === 0 || isNullBodyStatus(status) ? undefined : new BufferBody(bytes)
  if (response.body !== undefined) headers.set('content-type', contentType)
  if (!isNullBodyStatus(status)) headers.set('content-length', String(bytes.length))
}

/** What else says something of the content that was replaced. */
const contentFields = ['content-type', 'content-language', 'content-disposition', 'content-location', 'content-range', 'accept-ranges', 'etag', 'last-modified']
