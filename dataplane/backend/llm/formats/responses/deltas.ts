import { findText, type EventTexts } from '../../stream/event.ts'
import { numberOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import type { JsonObject, TextDelta } from '../../common/types.ts'

/**
 * Finds the text in an event of a Responses stream: segments `<item>:text:<part>`, `<item>:summary:<part>`, `<item>:tool`, `:transcript`,
 * `:code`, those of `findShell`. `done` events repeat the whole text.
 */
export function findResponsesTexts(data: JsonObject): EventTexts {
  const item = numberOf(data['output_index']) ?? 0
  const part = numberOf(data['content_index']) ?? 0
  const text = `${item}:text:${part}`
  const summary = `${item}:summary:${numberOf(data['summary_index']) ?? 0}`
  const tool = `${item}:tool`
  switch (data['type']) {
    case 'response.output_text.delta':
    case 'response.refusal.delta':
      return open(findText(data, 'delta', 'text', text))
    case 'response.output_text.done':
      return { deltas: findText(data, 'text', 'text', text, true), closes: [text] }
    case 'response.refusal.done':
      return { deltas: findText(data, 'refusal', 'text', text, true), closes: [text] }
    case 'response.reasoning_text.delta':
      return open(findText(data, 'delta', 'reasoning', text))
    case 'response.reasoning_text.done':
      return { deltas: findText(data, 'text', 'reasoning', text, true), closes: [text] }
    case 'response.reasoning_summary_text.delta':
      return open(findText(data, 'delta', 'reasoning', summary))
    case 'response.reasoning_summary_text.done':
      return { deltas: findText(data, 'text', 'reasoning', summary, true), closes: [summary] }
    case 'response.audio.transcript.delta':
    case 'response.output_audio_transcript.delta':
      return open(findText(data, 'delta', 'text', `${item}:transcript`))
    case 'response.audio.transcript.done':
    case 'response.output_audio_transcript.done':
      return { deltas: findText(data, 'transcript', 'text', `${item}:transcript`, true), closes: [`${item}:transcript`] }
    case 'response.output_text.annotation.added':
      return {
        ...open(['title', 'filename', 'text'].flatMap((key) => findText(objectOf(data['annotation']), key, 'text', `${item}:annotation`, true))),
        roots: [data['annotation']],
      }
    case 'response.code_interpreter_call_code.delta':
      return open(findText(data, 'delta', 'text', `${item}:code`))
    case 'response.code_interpreter_call_code.done':
      return { deltas: findText(data, 'code', 'text', `${item}:code`, true), closes: [`${item}:code`] }
    case 'response.shell_call_command.added':
    case 'response.shell_call_command.delta':
    case 'response.shell_call_command.done':
    case 'response.shell_call_output_content.delta':
    case 'response.shell_call_output_content.done':
      return findShell(data, item)
    case 'response.function_call_arguments.delta':
    case 'response.mcp_call_arguments.delta':
    case 'response.custom_tool_call_input.delta':
      return open(findText(data, 'delta', 'toolInput', tool))
    case 'response.function_call_arguments.done':
    case 'response.mcp_call_arguments.done':
      return { deltas: findText(data, 'arguments', 'toolInput', tool, true), closes: [tool] }
    case 'response.custom_tool_call_input.done':
      return { deltas: findText(data, 'input', 'toolInput', tool, true), closes: [tool] }
    case 'response.content_part.added':
    case 'response.content_part.done':
      return { ...open(findPart(objectOf(data['part']), text)), roots: [data['part']] }
    case 'response.reasoning_summary_part.added':
    case 'response.reasoning_summary_part.done':
      return open(findText(objectOf(data['part']), 'text', 'reasoning', summary, true))
    case 'response.output_item.added':
      return { ...open(findItem(objectOf(data['item']), item)), roots: [data['item']] }
    case 'response.output_item.done':
      return { deltas: findItem(objectOf(data['item']), item), closes: [`${item}:*`], roots: [data['item']] }
    case 'response.completed':
    case 'response.incomplete':
    case 'response.failed':
      return {
        deltas: [
          ...objectsOf(objectOf(data['response'])?.['output']).flatMap(findItem),
          ...findText(objectOf(data['response']), 'output_text', 'text', 'output_text', true),
        ],
        closes: ['*'],
        roots: [objectOf(data['response'])?.['output']],
      }
    default:
      // An event of another shape is searched as a whole.
      return { ...open([]), roots: isKnown(data['type']) ? [] : [data] }
  }
}

/** Commands of a shell call: segments `<item>:command:<index>`, and their output: `:stdout:<index>`, `:stderr:<index>`. */
function findShell(data: JsonObject, item: number): EventTexts {
  const at = numberOf(data['command_index']) ?? 0
  const command = `${item}:command:${at}`
  const delta = objectOf(data['delta'])
  switch (data['type']) {
    case 'response.shell_call_command.added':
      return open(findText(data, 'command', 'text', command))
    case 'response.shell_call_command.delta':
      return open(findText(data, 'delta', 'text', command))
    case 'response.shell_call_command.done':
      return { deltas: findText(data, 'command', 'text', command, true), closes: [command] }
    case 'response.shell_call_output_content.delta':
      return open(['stdout', 'stderr'].flatMap((key) => findText(delta, key, 'text', `${item}:${key}:${at}`)))
    default:
      return { deltas: [], closes: [`${item}:stdout:${at}`, `${item}:stderr:${at}`], roots: [data['output']] }
  }
}

const isKnown = (type: unknown): boolean => typeof type === 'string' && (type.startsWith('response.') || type === 'error')

function open(deltas: readonly TextDelta[]): EventTexts {
  return { deltas, closes: [] }
}

function findItem(item: JsonObject | undefined, index: number): TextDelta[] {
  if (item === undefined) return []
  return [
    ...objectsOf(item['content']).flatMap((part, at) => findPart(part, `${index}:text:${at}`)),
    ...objectsOf(item['summary']).flatMap((part, at) => findText(part, 'text', 'reasoning', `${index}:summary:${at}`, true)),
    ...(item['type'] === 'reasoning' ? findText(item, 'encrypted_content', 'copy', `${index}:text:0`) : []),
    ...findText(item, 'arguments', 'toolInput', `${index}:tool`, true),
    ...findText(item, 'input', 'toolInput', `${index}:tool`, true),
    ...findText(item, 'code', 'text', `${index}:code`, true),
    ...findText(item, 'output', 'text', `${index}:output`, true),
  ]
}

function findPart(part: JsonObject | undefined, segment: string): TextDelta[] {
  const kind = textOf(part?.['type']) === 'reasoning_text' ? 'reasoning' : 'text'
  return [
    ...findText(part, 'text', kind, segment, true),
    ...findText(part, 'refusal', kind, segment, true),
    ...findText(part, 'transcript', kind, segment.replace(/:text:\d+$/, ':transcript'), true),
  ]
}
