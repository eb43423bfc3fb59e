import type { Block, Chat, ToolChoice, ToolResult } from '../../common/neutral.ts'
import { compact, inside, numberOf } from '../../common/read.ts'
import { budgetOfEffort } from '../../common/tools.ts'
import type { ConvertedRequest, JsonObject, RequestContext } from '../../common/types.ts'

const DEFAULT_MAX_TOKENS = 4096
/** The upstream rejects smaller thinking budgets. */
const MIN_BUDGET = 1024

/** Writes a Messages request for Chat Completions clients (llm.md §7.2). */
export function writeMessagesRequest(chat: Chat, { model }: RequestContext): ConvertedRequest {
  const maxTokens = chat.maxTokens ?? DEFAULT_MAX_TOKENS
  const body = compact({
    model,
    max_tokens: maxTokens,
    system: chat.system.length > 0 ? chat.system.map(({ text }) => text).join('\n') : undefined,
    messages: chat.turns.flatMap(({ role, blocks }) => {
      const content = blocks.flatMap((block) => writeBlock(block) ?? [])
      return content.length > 0 ? [{ role: role === 'assistant' ? role : 'user', content }] : []
    }),
    temperature: chat.temperature,
    top_p: chat.topP,
    stop_sequences: chat.stop.length > 0 ? chat.stop : undefined,
    stream: chat.isStreaming ? true : undefined,
    tools: chat.tools.length > 0 ? chat.tools.map(({ name, description, schema }) => compact({ name, description, input_schema: schema ?? {} })) : undefined,
    tool_choice: writeToolChoice(chat),
    metadata: chat.user === undefined ? undefined : { user_id: chat.user },
    thinking: writeThinking(chat, numberOf(maxTokens) ?? DEFAULT_MAX_TOKENS),
    output_config: chat.format && {
      format: { type: 'json_schema', schema: chat.format.type === 'object' ? { type: 'object', additionalProperties: true } : chat.format.schema },
    },
  })
  return { body, memo: { model, isStreaming: chat.isStreaming, toolNames: new Map() }, warnings: chat.warnings }
}

function writeBlock(block: Block): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      return { type: 'image', source: { type: 'base64', media_type: block.mediaType, data: block.data } }
    case 'imageUrl':
      return { type: 'image', source: { type: 'url', url: block.url } }
    case 'toolUse':
      return { type: 'tool_use', id: block.id, name: block.name, input: block.input }
    case 'toolResult':
      return { type: 'tool_result', tool_use_id: block.id, content: writeResult(block) }
    case 'thinking':
    case 'document':
      return undefined
  }
}

function writeResult({ content, isPlain }: ToolResult): unknown {
  const parts = content.flatMap((block) => writeBlock(block) ?? [])
  return isPlain ? (inside(parts[0])['text'] ?? '') : parts
}

function writeToolChoice({ toolChoice, isParallel, tools }: Chat): JsonObject | undefined {
  const choice: ToolChoice | undefined = toolChoice ?? (isParallel !== undefined && tools.length > 0 ? { type: 'auto' } : undefined)
  if (choice === undefined) return undefined
  // The choice `none` does not allow disable_parallel_tool_use.
  return isParallel === undefined || choice.type === 'none' ? choice : { ...choice, disable_parallel_tool_use: !isParallel }
}

function writeThinking({ effort, thinkingBudget }: Chat, maxTokens: number): JsonObject | undefined {
  const budget = thinkingBudget ?? budgetOfEffort(effort)
  if (budget === undefined || budget < MIN_BUDGET || maxTokens <= MIN_BUDGET) return undefined
  return { type: 'enabled', budget_tokens: Math.min(budget, maxTokens - 1) }
}
