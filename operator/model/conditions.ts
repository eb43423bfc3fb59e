import { withCode, type MessageCode } from '#api/messages/code.ts'
import { SHADOWED, type ConditionReason, type ConditionType } from '#api/names.ts'
import type { Condition } from './translation.ts'

/** A mistake of a user, as the reason and message of a condition. It is a value, never an exception. */
export interface Fault {
  readonly reason: ConditionReason
  readonly message: string
}

/** A new fault. The code names its page in docs/reference/messages. */
export const fault = (reason: ConditionReason, message: string, code: MessageCode): Fault => ({ reason, message: withCode(message, code) })

/** The fault of another condition that has the same cause. */
export const faultBy = (reason: ConditionReason, cause: Fault, prefix = ''): Fault => ({ reason, message: `${prefix}${cause.message}` })

/** Conditions that report a problem by being True. */
const negative: ReadonlySet<string> = new Set(['Conflicted', 'PartiallyInvalid', 'InsecureFrontendValidationMode', SHADOWED])

/** Whether a condition reports a problem, including Accepted with reason PartiallyValid. */
export function isBad({ type, status, reason }: Condition): boolean {
  return reason === 'PartiallyValid' || status !== (negative.has(type) ? 'False' : 'True')
}

/** The API server's bound on a condition message. */
const MAX_MESSAGE = 32_768

export function condition(type: ConditionType, status: boolean, reason: ConditionReason, message: string, observedGeneration: number): Condition {
  return { type, status: status ? 'True' : 'False', reason, message: message.slice(0, MAX_MESSAGE), observedGeneration }
}

/** True with `reason` when there is no fault, else False with the fault. */
export function conditionOf(type: ConditionType, failure: Fault | undefined, reason: ConditionReason, message: string, observedGeneration: number): Condition {
  return failure ? condition(type, false, failure.reason, failure.message, observedGeneration) : condition(type, true, reason, message, observedGeneration)
}

/** One fault for several: the first one's reason, every distinct message. */
export function joinFaults(faults: readonly Fault[]): Fault | undefined {
  const first = faults[0]
  return first && { reason: first.reason, message: [...new Set(faults.map((each) => each.message))].join('; ') }
}
