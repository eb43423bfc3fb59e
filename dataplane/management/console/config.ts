import { createRoute, z } from '@hono/zod-openapi'
import { logLevel, versionDetail, versionList } from '#api/management/config.ts'
import { LogLevelError } from '../../observe/telemetry/log.ts'

import type { ConsoleApp, ConsoleContext } from './context.ts'
import { sendText } from './pieces.ts'
import { failed, json } from './responses.ts'

const readConfig = createRoute({
  method: 'get',
  path: '/api/v1/config',
  summary: 'The config in force, secrets redacted',
  responses: { 200: json(z.record(z.string(), z.unknown()), 'The same as /config_dump.') },
})

const listVersions = createRoute({
  method: 'get',
  path: '/api/v1/config/versions',
  summary: 'The last versions of the config, and the last rejections',
  responses: { 200: json(versionList, 'Newest first.') },
})

const readVersion = createRoute({
  method: 'get',
  path: '/api/v1/config/versions/{version}',
  summary: 'A version of the config with its differences from the one before',
  request: { params: z.object({ version: z.string().regex(/^\d{1,15}$/) }) },
  responses: { 200: json(versionDetail, 'Secrets are redacted.'), 404: failed('The version is not one of the last 20.') },
})

const readLevel = createRoute({
  method: 'get',
  path: '/api/v1/log-level',
  summary: 'The log level',
  responses: { 200: json(logLevel, 'A level, or module=level pairs separated by commas.') },
})

const setLevel = createRoute({
  method: 'put',
  path: '/api/v1/log-level',
  summary: 'Sets the log level until the process ends',
  request: { body: { required: true, content: { 'application/json': { schema: logLevel } } } },
  responses: { 200: json(logLevel, 'The level in force.'), 400: failed('The level is invalid.') },
})

export function registerConfig(app: ConsoleApp, context: ConsoleContext): void {
  const { versions, logging } = context
  app.openapi(readConfig, (c) => sendText(c, context.writeConfig()))
  app.openapi(listVersions, (c) => c.json(versions.list(), 200))
  app.openapi(readVersion, (c) => {
    const { version } = c.req.valid('param')
    const found = versions.find(Number(version), (kind, message, secrets) => context.redactMessage(kind, message, secrets))
    return found === undefined ? c.json({ error: `version ${version} is not one of the last 20` }, 404) : c.json(found, 200)
  })
  app.openapi(readLevel, (c) => c.json({ level: logging.level }, 200))
  app.openapi(setLevel, (c) => {
    try {
      logging.setLevel(c.req.valid('json').level)
    } catch (error) {
      if (error instanceof LogLevelError) return c.json({ error: error.message }, 400)
      throw error
    }
    return c.json({ level: logging.level }, 200)
  })
}
