import type { Definitions, Schema } from '../schema.ts'
import { definitions } from '../v1alpha1/definitions.ts'
import { boolean } from './shared.ts'

/** Field of MCP targets and of servers in the short form. */
export const inheritEnv: Schema = boolean('Whether command gets the environment of the data plane, too; `env` takes precedence. Default: false.')

const { image: _image, ...fields } = definitions['McpTargetSelector']?.properties ?? {}
const rules = definitions['McpTargetSelector']?.['x-kubernetes-validations'] ?? []

/** MCP targets as data planes have them: programs run where the data plane does, not in an image. */
export const mcpProgramDefinitions: Definitions = {
  McpTargetSelector: {
    ...definitions['McpTargetSelector'],
    properties: { ...fields, inheritEnv },
    'x-kubernetes-validations': [
      ...rules.filter(({ rule }) => !rule.includes('self.image')),
      { rule: '!has(self.inheritEnv) || has(self.command)', message: 'inheritEnv is for command' },
    ],
  },
}
