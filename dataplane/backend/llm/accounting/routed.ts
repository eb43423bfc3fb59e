import type { Stored } from '#api/cel/index.ts'
import type { RolloutArm } from './rollout.ts'

/** The choice of a target for a model (llm.md §15.3). */
export interface RoutedModel {
  /** The name that the client asked for. */
  readonly requested: string
  readonly promptTokens: number
  /** What the prompt has, such as `text` and `image`. */
  readonly modalities: readonly string[]
  /** Rates of the models of the targets, by name. */
  readonly prices: Stored
  /** The target in use; undefined: none was chosen. */
  readonly target: string | undefined
  /** Targets that were not used, or failed. */
  readonly skipped: readonly { readonly target: string; readonly reason: string }[]
  /** The sides of rollouts that the target is on. */
  readonly arms: readonly RolloutArm[]
  /** The target names the model that its backend is asked for: the client does not. */
  readonly isNamed: boolean
}
