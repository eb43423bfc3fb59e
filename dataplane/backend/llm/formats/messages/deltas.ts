import { findText, type EventTexts } from '../../stream/event.ts'
import { numberOf, objectOf } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'

/** Finds the text in an event of a Messages stream: segments `<block>:text`, `:thinking`, `:tool`. */
export function findMessagesTexts(data: JsonObject): EventTexts {
  const index = numberOf(data['index']) ?? 0
  const delta = objectOf(data['delta'])
  switch (data['type']) {
    case 'content_block_start': {
      const block = objectOf(data['content_block'])
      return {
        deltas: [...findText(block, 'text', 'text', `${index}:text`), ...findText(block, 'thinking', 'reasoning', `${index}:thinking`)],
        closes: [],
        roots: [block],
      }
    }
    case 'content_block_delta':
      return {
        deltas: [
          ...findText(delta, 'text', 'text', `${index}:text`),
          ...findText(delta, 'thinking', 'reasoning', `${index}:thinking`),
          ...findText(delta, 'partial_json', 'toolInput', `${index}:tool`),
          ...findText(delta, 'signature', 'copy', `${index}:thinking`),
          ...['cited_text', 'title', 'document_title'].flatMap((key) => findText(objectOf(delta?.['citation']), key, 'text', `${index}:citation`, true)),
        ],
        closes: [],
        roots: [delta],
      }
    case 'message_start':
      return { deltas: [], closes: [], roots: [objectOf(data['message'])?.['content']] }
    case 'content_block_stop':
      return { deltas: [], closes: [`${index}:*`] }
    case 'message_stop':
      return { deltas: [], closes: ['*'] }
    case 'message_delta':
    case 'ping':
    case 'error':
      return { deltas: [], closes: [] }
    default:
      // An event of another shape.
      return { deltas: [], closes: [], roots: [data] }
  }
}
