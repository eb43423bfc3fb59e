import type { Block, Chat, ToolResult } from '../../common/neutral.ts'
import { compact } from '../../common/read.ts'
import { objectInput } from '../../common/tools.ts'
import type { JsonObject } from '../../common/types.ts'
import type { Documents } from './documents.ts'

/** Writes a content block; undefined if it has no equivalent in Converse, which the rules of the target let not pass. */
export function writeContent(block: Block, documents: Documents, model: string): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      return { text: block.text }
    case 'image':
      return { image: { format: formatOf(block.mediaType), source: { bytes: block.data } } }
    case 'imageUrl':
      return undefined
    case 'document':
      return { document: documents.write(block) }
    case 'thinking':
      return { reasoningContent: { reasoningText: { text: block.text, signature: block.signature } } }
    case 'redacted':
      return { reasoningContent: { redactedContent: block.data } }
    case 'toolUse':
      return { toolUse: { toolUseId: block.id, name: block.name, input: objectInput(block) } }
    case 'toolResult':
      return { toolResult: compact({ toolUseId: block.id, content: writeResult(block, documents), status: statusOf(block, model) }) }
  }
}

/** The subtype after `image/`. Converse knows `jpeg`, but not `jpg`. */
function formatOf(mediaType: string): string {
  const subtype = mediaType.replace(/^image\//, '')
  return subtype === 'jpg' ? 'jpeg' : subtype
}

function writeResult({ content }: ToolResult, documents: Documents): JsonObject[] {
  return content.flatMap((block): JsonObject[] => {
    if (block.type === 'text') return [{ text: block.text }]
    if (block.type === 'image') return [{ image: { format: formatOf(block.mediaType), source: { bytes: block.data } } }]
    if (block.type === 'document') return [{ document: documents.write(block) }]
    return []
  })
}

/** The status of a tool result, which only Claude and Nova accept (llm.md §7.7). */
function statusOf({ isError }: ToolResult, model: string): string | undefined {
  if (isError === undefined || !/claude|nova/i.test(model)) return undefined
  return isError ? 'error' : 'success'
}

/** Whether the turns contain tool calls or results. */
export function hasToolBlocks({ turns }: Chat): boolean {
  return turns.some(({ blocks }) => blocks.some(({ type }) => type === 'toolUse' || type === 'toolResult'))
}
