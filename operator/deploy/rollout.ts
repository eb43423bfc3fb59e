/** Fields of a Deployment that show whether its pods run. */
export interface RunningDeployment {
  readonly spec?: { readonly replicas?: number }
  readonly status?: { readonly readyReplicas?: number; readonly conditions?: readonly DeploymentCondition[] } | undefined
}

interface DeploymentCondition {
  readonly type: string
  readonly status: string
  readonly message?: string
}

/** Pods of a Deployment. */
export interface Rollout {
  readonly ready: number
  readonly wanted: number
  /** Reasons why pods are missing, as the Deployment reports them. */
  readonly failures: readonly string[]
}

/** Reads how many pods of a Deployment are ready, and why others are not. */
export function readRollout({ spec, status }: RunningDeployment): Rollout {
  const failures = (status?.conditions ?? []).flatMap((condition) => {
    const { message = '' } = condition
    if (condition.type === 'ReplicaFailure' && condition.status === 'True') return [`no pod can be created: ${message}`]
    return condition.type === 'Progressing' && condition.status === 'False' ? [`the rollout is stuck: ${message}`] : []
  })
  return { ready: status?.readyReplicas ?? 0, wanted: spec?.replicas ?? 1, failures }
}

export const describeReady = ({ ready, wanted }: Rollout): string => `${ready} of ${wanted} pods are ready`
