import { z } from '@hono/zod-openapi'

const change = z.object({ kind: z.string(), key: z.string(), change: z.enum(['added', 'changed', 'removed']) }).openapi('ConfigChange')

const versionSummary = z
  .object({
    version: z.number(),
    appliedAtMs: z.number(),
    counts: z.object({ added: z.number(), changed: z.number(), removed: z.number() }),
    changes: z.array(change).openapi({ description: 'At most 50.' }),
    pod: z.string().nullable(),
  })
  .openapi('ConfigVersion')

const rejection = z
  .object({
    timeMs: z.number(),
    source: z.enum(['stream', 'file']).openapi({ description: 'The config stream of the operator, or the config file.' }),
    code: z.string(),
    key: z.string().nullable().openapi({ description: 'Key of the rejected message.' }),
    message: z.string(),
    pod: z.string().nullable(),
  })
  .openapi('ConfigRejection')

export const versionList = z
  .object({
    current: z.number(),
    versions: z.array(versionSummary).openapi({ description: 'The last 20, newest first.' }),
    rejections: z.array(rejection).openapi({ description: 'The last 20, newest first.' }),
  })
  .openapi('ConfigVersions')

const difference = z
  .object({ path: z.string().openapi({ example: 'traffic.timeouts.request' }), before: z.unknown(), after: z.unknown() })
  .openapi('Difference')

export const versionDetail = versionSummary
  .extend({ changes: z.array(change.extend({ differences: z.array(difference).openapi({ description: 'At most 100; secrets redacted.' }) })) })
  .openapi('ConfigVersionDetail')

export const logLevel = z.object({ level: z.string().openapi({ example: 'info,upstream=debug' }) }).openapi('LogLevel')

export type ConfigVersions = z.infer<typeof versionList>
export type ConfigVersionDetail = z.infer<typeof versionDetail>
export type Difference = z.infer<typeof difference>
