import { objectOf, textOf } from '../common/read.ts'
import type { ChatFormat, JsonObject } from '../common/types.ts'
import { withList, withMember, withText } from '../rules/lists.ts'

type Names = ReadonlyMap<string, string>

/** A native response, or an event of a stream, with the client's names of tools; the same object if there are none to restore. */
export function restoreNames(format: ChatFormat, data: JsonObject, names: Names): JsonObject {
  const restore = (name: string): string => names.get(name) ?? name
  switch (format) {
    case 'completions':
      return withList(data, 'choices', (choice) => restoreChoice(choice, restore))
    case 'messages': {
      const listed = withList(data, 'content', (block) => restoreBlock(block, restore))
      return withMember(listed, 'content_block', (block) => restoreBlock(block, restore))
    }
    case 'gemini':
      // Names of its clients are those that Gemini accepts.
      return data
    case 'responses': {
      const named = CALL_EVENT.test(textOf(data['type']) ?? '') ? withText(data, 'name', restore) : data
      const listed = withList(named, 'output', (item) => restoreItem(item, restore))
      const single = withMember(listed, 'item', (item) => restoreItem(item, restore))
      return objectOf(single['response']) === undefined ? withTools(single, restore) : withMember(single, 'response', (one) => restoreNames(format, one, names))
    }
  }
}

const CALL_EVENT = /^response\.function_call_arguments\./

function restoreChoice(choice: JsonObject, restore: (name: string) => string): JsonObject {
  const restored = (message: JsonObject): JsonObject =>
    withList(message, 'tool_calls', (call) =>
      withMember(
        withMember(call, 'function', (called) => withText(called, 'name', restore)),
        'custom',
        (called) => withText(called, 'name', restore),
      ),
    )
  return withMember(withMember(choice, 'message', restored), 'delta', restored)
}

const restoreBlock = (block: JsonObject, restore: (name: string) => string): JsonObject =>
  block['type'] === 'tool_use' ? withText(block, 'name', restore) : block

const restoreItem = (item: JsonObject, restore: (name: string) => string): JsonObject =>
  item['type'] === 'function_call' || item['type'] === 'custom_tool_call' ? withText(item, 'name', restore) : item

/** A Responses object repeats the tools and the choice of its request. */
function withTools(response: JsonObject, restore: (name: string) => string): JsonObject {
  const listed = withList(response, 'tools', (tool) => (tool['type'] === 'function' || tool['type'] === 'custom' ? withText(tool, 'name', restore) : tool))
  return withMember(listed, 'tool_choice', (choice) => (choice['type'] === 'function' ? withText(choice, 'name', restore) : choice))
}
