import { inside, objectOf, textOf } from '../common/read.ts'
import { FormatError, type ClientFormat, type Conversion } from '../common/types.ts'
import { countOf, readAnyUsage } from '../usage/raw.ts'
import { rejectStream } from './embeddings.ts'
import { translateError } from './errors.ts'
import { emptyFacts } from './facts.ts'

/** Requests of an API that only servers with the same API have: rankings and moderations. */
export function passPlain(format: Extract<ClientFormat, 'rerank' | 'moderations'>): Conversion {
  return {
    from: format,
    to: format,
    isNative: true,
    request: (body, { model }) => ({ body, memo: { model, isStreaming: false, toolNames: new Map() }, omitted: [] }),
    response(body) {
      const object = objectOf(body)
      if (object === undefined) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      const meta = inside(object['meta'])
      // Cohere bills by search units and reports tokens beside them.
      const searches = countOf(inside(meta['billed_units'])['search_units'])
      const usage = readAnyUsage(inside(object['usage'])) ?? readAnyUsage(inside(meta['tokens'])) ?? { isCacheExcluded: false }
      return { body: object, facts: emptyFacts(searches === undefined ? usage : { ...usage, modal: { searches } }, textOf(object['model'])) }
    },
    error: (status, body) => translateError(format, true, status, body),
    stream: rejectStream,
  }
}
