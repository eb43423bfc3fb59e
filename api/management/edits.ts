import { z } from '@hono/zod-openapi'

const section = z.enum(['keys', 'budgets', 'models', 'guards', 'tools'])
const path = z
  .array(z.union([z.string().max(256), z.number().int().min(0).max(10_000)]))
  .min(1)
  .max(16)
const keyName = z.string().regex(/^[-._a-zA-Z0-9]{1,253}$/, 'is not a name of 1 to 253 letters, digits, ., _ and -')

const field = z
  .object({
    section,
    object: z.string().nullable().openapi({ description: 'The object on the cluster: `ProxyPolicy shop/budgets`. Null: the config file.' }),
    path,
    text: z.string().nullable().openapi({ description: 'The value as YAML, credentials redacted; null: not set.' }),
  })
  .openapi('EditableField')

const keyList = z
  .object({
    id: z.string(),
    name: z.string().openapi({ example: 'default/clients' }),
    entries: z.array(
      z.object({
        name: z.string(),
        state: z.enum(['valid', 'expired', 'invalid']),
        expires: z.string().nullable(),
        metadata: z.record(z.string(), z.unknown()),
      }),
    ),
  })
  .openapi('KeyList')

export const editState = z
  .object({
    enabled: z.boolean(),
    reason: z.string().nullable().openapi({ description: 'Why nothing can be changed.' }),
    target: z.string().openapi({ description: 'The name of the config file, or of the cluster.', example: 'gateway.yaml' }),
    revision: z.string().openapi({ description: 'What a change refers to; a change of another revision is rejected.' }),
    fields: z.array(field),
    keys: z.array(keyList),
    problems: z.array(z.string()).openapi({ description: 'Why the config file is invalid.' }),
  })
  .openapi('EditState')

const fieldChange = z
  .object({
    object: z.string().max(600).nullable().default(null),
    path,
    text: z.string().max(65_536).nullable().openapi({ description: 'The value as YAML; null removes it.' }),
  })
  .strict()

const keyChange = z
  .object({
    key: z
      .object({
        list: z.string().max(600).openapi({ description: '`id` of the list.' }),
        name: keyName,
        action: z.enum(['create', 'rotate', 'revoke']),
        expires: z.string().max(64).optional().openapi({ description: 'RFC 3339.' }),
        metadata: z.record(z.string().max(64), z.unknown()).optional(),
      })
      .strict(),
  })
  .strict()

export const editRequest = z
  .object({
    revision: z.string().max(256),
    changes: z
      .array(z.union([keyChange, fieldChange]))
      .min(1)
      .max(32),
  })
  .strict()
  .openapi('EditRequest')

export const editPreview = z
  .object({
    diff: z
      .array(z.object({ kind: z.enum(['same', 'added', 'removed', 'gap']), text: z.string() }))
      .openapi({ description: 'By lines, credentials redacted.' }),
    problems: z.array(z.string()).openapi({ description: 'Why the change is rejected; as proxyctl lint reports them.' }),
    warnings: z.array(z.string()).openapi({ description: 'Values that are accepted but cannot work.' }),
  })
  .openapi('EditPreview')

export const editResult = editPreview
  .extend({
    revision: z.string(),
    backup: z.string().nullable().openapi({ description: 'Name of the copy of the file before.' }),
    keys: z.array(z.object({ name: z.string(), key: z.string() })).openapi({ description: 'Created keys, which are returned only now.' }),
  })
  .openapi('EditResult')

export type EditState = z.infer<typeof editState>
export type EditRequest = z.infer<typeof editRequest>
export type EditPreview = z.infer<typeof editPreview>
export type EditResult = z.infer<typeof editResult>
