import type { ChatFormat, JsonObject } from '../common/types.ts'
import { fitGemini } from './native-gemini.ts'
import { fitCompletions, type FittedBody } from './native-completions.ts'
import { fitMessages } from './native-messages.ts'
import { fitResponses } from './native-responses.ts'
import type { TargetRules } from './types.ts'

/**
 * Changes a request that is sent in the client's format, so that its target accepts it (llm.md §7.15); the same object if it is accepted as it is. Fields
 * that the gateway does not know stay.
 */
export function fitNative(body: JsonObject, format: ChatFormat, rules: TargetRules): FittedBody {
  switch (format) {
    case 'completions':
      return fitCompletions(body, rules)
    case 'messages':
      return fitMessages(body, rules)
    case 'responses':
      return fitResponses(body, rules)
    case 'gemini':
      return fitGemini(body, rules)
  }
}
