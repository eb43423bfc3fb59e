import { withCode } from '#api/messages/code.ts'
import { describeReady, type Rollout } from '../deploy/rollout.ts'
import type { ConditionReason } from '#api/names.ts'
import type { Condition, ObjectStatus } from '../model/translation.ts'
import { condition } from '../model/conditions.ts'

/** The reason why the objects of a Gateway could not be applied. */
interface DeploymentFault {
  readonly condition: 'Accepted' | 'Programmed'
  readonly reason: ConditionReason
  readonly message: string
}

/**
 * Reports in the status of a Gateway that its objects could not be applied (operator.md §4.2). A fault that translation found has precedence,
 * because it is the mistake of the user.
 */
export function withDeploymentFault(status: ObjectStatus, failure: DeploymentFault): ObjectStatus {
  return mapConditions(status, (each) => {
    const isMeant = each.type === failure.condition || (failure.condition === 'Accepted' && each.type === 'Programmed')
    if (!isMeant || each.status === 'False') return each
    // A Gateway that is not accepted is not programmed either.
    const reason = each.type === failure.condition ? failure.reason : 'Invalid'
    return condition(each.type === 'Accepted' ? 'Accepted' : 'Programmed', false, reason, failure.message, each.observedGeneration)
  })
}

/** Makes Programmed depend on an address and a ready pod (operator.md §4.2). Without `rollout`, the Deployment is not known yet. */
export function withRollout(status: ObjectStatus, hasAddress: boolean, rollout: Rollout | undefined): ObjectStatus {
  const ready = rollout && describeReady(rollout)
  const failures = rollout && rollout.ready < rollout.wanted && rollout.failures.length > 0 ? `: ${rollout.failures.join('; ')}` : ''
  const missing = [
    ...(hasAddress ? [] : ['its Service has no address yet']),
    ...(rollout === undefined ? ['its Deployment has not been created yet'] : rollout.ready === 0 ? [`${ready}${failures}`] : []),
  ]
  return mapConditions(status, (each) => {
    if (each.type !== 'Programmed' || each.status === 'False') return each
    return missing.length > 0
      ? condition('Programmed', false, 'Pending', withCode(`Gateway is not ready: ${missing.join('; ')}`, 'PX1025'), each.observedGeneration)
      : { ...each, message: `${each.message}; ${ready}${failures}` }
  })
}

/** Reports fields of ProxyParameters that are ignored. They do not stop the rollout. */
export function withWarnings(status: ObjectStatus, warnings: readonly string[], generation: number): ObjectStatus {
  if (warnings.length === 0) return status
  const { conditions = [] } = status.status as { conditions?: readonly Condition[] }
  // Translation may have set it: a type of condition occurs once.
  const earlier = conditions.find(({ type }) => type === 'PartiallyInvalid')
  const message = [earlier?.message ?? [], withCode(warnings.join('; '), 'PX1023')].flat().join('; ')
  const warning = condition('PartiallyInvalid', true, 'InvalidParameters', message, generation)
  return { ...status, status: { ...status.status, conditions: [...conditions.filter((each) => each !== earlier), warning] } }
}

function mapConditions(status: ObjectStatus, change: (condition: Condition) => Condition): ObjectStatus {
  const { conditions = [] } = status.status as { conditions?: readonly Condition[] }
  return { ...status, status: { ...status.status, conditions: conditions.map(change) } }
}
