import { isObject } from './json.ts'
import type { JsonObject } from './types.ts'

export type Modality = 'text' | 'image' | 'audio' | 'file'

/** Kinds of parts by their `type`, in all client formats. */
const kinds: ReadonlyMap<unknown, Modality> = new Map<unknown, Modality>([
  ['image_url', 'image'],
  ['input_image', 'image'],
  ['image', 'image'],
  ['input_audio', 'audio'],
  ['audio', 'audio'],
  ['file', 'file'],
  ['input_file', 'file'],
  ['document', 'file'],
])

/** What the messages of a request have. Parts are looked at, not their content. */
export function modalitiesOf({ messages, input, system, instructions, contents }: JsonObject): ReadonlySet<Modality> {
  const found = new Set<Modality>()
  const waiting: unknown[] = [messages, input, system, instructions, contents]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value === 'string') found.add('text')
    else if (Array.isArray(value)) for (const item of value as unknown[]) waiting.push(item)
    else if (isObject(value)) {
      const kind = kinds.get(value['type']) ?? kindOfMedia(value['inlineData'] ?? value['inline_data'] ?? value['fileData'] ?? value['file_data'])
      if (kind !== undefined) found.add(kind)
      else if (typeof value['text'] === 'string') found.add('text')
      // The output of a tool is that of `function_call_output`.
      waiting.push(value['content'], value['output'], value['parts'])
    }
  }
  return found
}

/** The kind of a part of Gemini, by its media type. */
function kindOfMedia(media: unknown): Modality | undefined {
  if (!isObject(media)) return undefined
  const type = media['mimeType'] ?? media['mime_type']
  const [kind] = typeof type === 'string' ? type.split('/', 1) : []
  return kind === 'image' || kind === 'audio' ? kind : 'file'
}
