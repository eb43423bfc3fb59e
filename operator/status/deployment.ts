import type { ConditionReason } from '#api/names.ts'
import type { Condition, ObjectStatus } from '../model/translation.ts'
import { condition } from '../model/conditions.ts'

/** Why the objects of a Gateway are not as they should be. */
interface DeploymentFault {
  readonly condition: 'Accepted' | 'Programmed'
  readonly reason: ConditionReason
  readonly message: string
}

/**
 * Says in the status of a Gateway that its objects could not be made (operator.md §4.2). What translation itself has found stays:
 * one fault at a time, and the user's own is the first.
 */
export function withDeploymentFault(status: ObjectStatus, failure: DeploymentFault): ObjectStatus {
  const { conditions = [] } = status.status as { conditions?: readonly Condition[] }
  return {
    ...status,
    status: {
      ...status.status,
      conditions: conditions.map((each) => {
        const isMeant = each.type === failure.condition || (failure.condition === 'Accepted' && each.type === 'Programmed')
        if (!isMeant || each.status === 'False') return each
        // A Gateway that is not accepted is not programmed either.
        const reason = each.type === failure.condition ? failure.reason : 'Invalid'
        return condition(each.type === 'Accepted' ? 'Accepted' : 'Programmed', false, reason, failure.message, each.observedGeneration)
      }),
    },
  }
}
