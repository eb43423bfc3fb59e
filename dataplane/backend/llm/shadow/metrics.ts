import { METRIC_PREFIX } from '#api/names.ts'
import { defineMetrics } from '../../../observe/telemetry/metrics/area.ts'
import type { ModelShadow } from '../models/table.ts'

const SIMILARITY = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1]

/** The metrics of comparisons (llm.md §15.6). Names of models are those of the config, patterns included. */
export const shadowMetrics = defineMetrics((registry) => {
  const labels = ['backend', 'model'] as const
  const copies = registry.counter(`${METRIC_PREFIX}llm_shadow_copies_total`, 'Chats that were drawn for a copy, by what became of it.', [...labels, 'result'])
  const differences = registry.counter(`${METRIC_PREFIX}llm_shadow_differences_total`, 'Differences between responses and those of copies, by kind.', [
    ...labels,
    'kind',
  ])
  const verdicts = registry.counter(`${METRIC_PREFIX}llm_shadow_verdicts_total`, 'Verdicts of judges about responses and those of copies.', [
    ...labels,
    'verdict',
  ])
  const similarity = registry.histogram(
    `${METRIC_PREFIX}llm_shadow_similarity`,
    'Similarity of the texts of responses and of those of copies, from 0 to 1.',
    SIMILARITY,
    labels,
  )
  return {
    copies: ({ backend, model }: ModelShadow, result: string) => copies.series(backend, model, result),
    differences: ({ backend, model }: ModelShadow, kind: string) => differences.series(backend, model, kind),
    verdicts: ({ backend, model }: ModelShadow, verdict: string) => verdicts.series(backend, model, verdict),
    similarity: ({ backend, model }: ModelShadow) => similarity.series(backend, model),
  }
})
