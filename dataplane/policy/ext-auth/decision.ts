import { isNullBodyStatus } from '../../request/exchange/answer.ts'
import type { PolicyContext } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { HeaderList } from '../../http/headers.ts'
import { isHopField } from '../../http/names.ts'
import { variables } from '../../request/exchange/variables.ts'

/** The response to a denied request. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

/** The result of a check. A denial has an answer. Changes of the request are applied already. */
export interface Decision {
  readonly answer?: Answer
  /** Changes the headers of the client's response. */
  readonly onResponse?: (headers: HeaderList) => void
}

/** Adds to the variable `extauthz` of expressions. */
export function keepMetadata(exchange: Exchange, metadata: Readonly<Record<string, unknown>> | undefined): void {
  if (metadata === undefined || Object.keys(metadata).length === 0) return
  variables.extauthz.set(exchange, Object.assign(Object.create(null) as Record<string, unknown>, variables.extauthz.get(exchange), metadata))
}

/** The service's denial as a response; its reason in logs is ExtAuth. */
export function respondDenied(c: PolicyContext, { status, headers, body }: Answer): Response {
  const { exchange } = c.var
  exchange.error = new ProxyError('EXT_AUTH')
  const allowed: Record<string, string[]> = {}
  for (const [name, value] of headers) if (!isHopField(name) && name !== 'content-length') (allowed[name] ??= []).push(value)
  const valid = (status >= 200 && status <= 599 ? status : 403) as 200
  return isNullBodyStatus(valid) ? c.body(null, valid, allowed) : c.body(new Uint8Array(body), valid, allowed)
}
