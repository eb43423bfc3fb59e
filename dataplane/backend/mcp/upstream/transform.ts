import type { Exchange } from '../../../request/exchange/exchange.ts'
import { bufferResponse, MAX_BUFFER_BYTES } from '../../../request/expression/buffer.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import type { CompiledTransform } from '../../../request/transformation/compile.ts'
import { transformResponse } from '../../../request/transformation/response.ts'
import { McpFailure } from '../message/failure.ts'
import { INTERNAL_ERROR } from '../message/rpc.ts'
import type { Target } from '../target/target.ts'
import { backendTransformation } from '../../../request/transformation/backend.ts'

/** Response headers that the gateway sets. */
const OWN = new Set(['content-type', 'content-length', 'content-encoding', 'cache-control', 'mcp-session-id'])

/**
 * Applies the response side of `transformation` to the HTTP response of a target (mcp.md §9). `sent` is the exchange with the target.
 * Changed headers are also stored in `answerHeaders`. Rejects with a McpFailure if the transformation needs the body of an event stream:
 * such a response must not pass unchanged.
 */
export async function transformAnswer(
  sent: Exchange,
  target: Target,
  response: ResponseHead,
  { maxBufferBytes, answerHeaders }: { readonly maxBufferBytes: number | undefined; readonly answerHeaders: HeaderList },
): Promise<ResponseHead> {
  const transformation = backendTransformation.get(sent)
  if (transformation?.response === undefined) return response
  const { body } = transformation.response
  if ((body !== undefined || transformation.buffersResponse) && isStream(response)) {
    response.body?.cancel()
    const what = 'is about the body, and an event stream has none to transform: use headers and the status'
    throw McpFailure.rpc(INTERNAL_ERROR, `transformation.response ${what}`, { status: 500, detail: `transformation.response of ${target.name} ${what}` })
  }
  sent.response = response
  if (transformation.buffersResponse) await bufferResponse(sent, maxBufferBytes ?? MAX_BUFFER_BYTES, transformation.parses)
  transformResponse(sent, transformation.response, new ExchangeView(sent))
  show(transformation.response, response.headers, answerHeaders)
  return response
}

const isStream = ({ headers }: ResponseHead): boolean => (headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream')

function show({ add, set }: CompiledTransform, headers: HeaderList, shown: HeaderList): void {
  const names = new Set([...add, ...set].filter(({ name, isPseudo }) => !isPseudo && !OWN.has(name)).map(({ name }) => name))
  for (const name of names) {
    shown.remove(name)
    for (const value of headers.getAll(name)) shown.append(name, value)
  }
}
