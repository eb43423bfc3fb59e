import { ApiObject, App, Chart } from 'cdk8s'
import type { DeployObject } from './types.ts'

/** Selector of a Deployment as its overlays left it. */
const selectorOf = (deployment: DeployObject): unknown => (deployment['spec'] as { selector?: unknown } | undefined)?.selector ?? {}

function make(deployment: DeployObject, apiVersion: string, kind: string, spec: object): DeployObject {
  const chart = new Chart(new App(), 'dependent', { disableResourceNameHashes: true })
  const { name, namespace, labels, ownerReferences } = deployment.metadata
  const metadata = { name, namespace, ...(labels ? { labels: { ...labels } } : {}), ...(ownerReferences ? { ownerReferences: [...ownerReferences] } : {}) }
  return new ApiObject(chart, 'object', { apiVersion, kind, metadata, spec }).toJson() as DeployObject
}

/** Selects the pods of the final Deployment, and has its labels (operator.md §3.3). */
export const budgetOf = (deployment: DeployObject): DeployObject => make(deployment, 'policy/v1', 'PodDisruptionBudget', { selector: selectorOf(deployment) })

/** Scales the final Deployment. maxReplicas is the overlay's to set: without it the API server refuses the object. */
export const autoscalerOf = (deployment: DeployObject): DeployObject =>
  make(deployment, 'autoscaling/v2', 'HorizontalPodAutoscaler', {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: deployment.metadata.name },
  })
