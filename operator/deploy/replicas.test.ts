import { expect, test } from '@jest/globals'
import { hasReplicas } from './replicas.ts'
import type { LevelParameters } from './types.ts'

const deployment = (replicas: number | null) => ({ deployment: { spec: { replicas } } })
const autoscaler = (spec?: Record<string, unknown>) => ({ horizontalPodAutoscaler: spec === undefined ? {} : { spec } })

test.each<[string, LevelParameters, boolean]>([
  ['no parameters', {}, false],
  ['one replica', { gateway: deployment(1) }, false],
  ['two replicas', { gateway: deployment(2) }, true],
  ['two replicas of the class', { class: deployment(2) }, true],
  ['two replicas of the class and one of the Gateway', { class: deployment(2), gateway: deployment(1) }, false],
  ['replicas of the class that the Gateway removes', { class: deployment(2), gateway: deployment(null) }, false],
  ['an autoscaler', { class: autoscaler({ maxReplicas: 5 }), gateway: deployment(1) }, true],
  ['an autoscaler of one pod', { class: autoscaler({ maxReplicas: 5 }), gateway: autoscaler({ maxReplicas: 1 }) }, false],
  ['an autoscaler without bound', { gateway: autoscaler() }, true],
])('detects whether a Gateway with %s can have several pods', (_, parameters, expected) => {
  expect(hasReplicas(parameters)).toBe(expected)
})
