import type { CallToolResult, GetPromptResult } from '@modelcontextprotocol/sdk/types.js'

/** A PNG with one red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
/** A WAV file without samples. */
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

export type PromptName = 'test_simple_prompt' | 'test_prompt_with_arguments' | 'test_prompt_with_embedded_resource' | 'test_prompt_with_image'
type Messages = GetPromptResult['messages']
const said = (text: string): Messages[number] => ({ role: 'user', content: { type: 'text', text } })

export const prompts: Readonly<
  Record<PromptName, { readonly args: readonly string[]; readonly messages: (args: Readonly<Record<string, string>>) => Messages }>
> = {
  test_simple_prompt: { args: [], messages: () => [said('This is a simple prompt for testing.')] },
  test_prompt_with_arguments: { args: ['arg1', 'arg2'], messages: ({ arg1, arg2 }) => [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] },
  test_prompt_with_embedded_resource: {
    args: ['resourceUri'],
    messages: ({ resourceUri = '' }) => [
      { role: 'user', content: { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } } },
      said('Please process the embedded resource above.'),
    ],
  },
  test_prompt_with_image: {
    args: [],
    messages: () => [{ role: 'user', content: { type: 'image', data: PNG, mimeType: 'image/png' } }, said('Please analyze the image above.')],
  },
}

export const resources = [
  { uri: 'test://static-text', mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  { uri: 'test://static-binary', mimeType: 'image/png', blob: PNG },
  { uri: 'test://watched-resource', mimeType: 'text/plain', text: 'watched' },
] as const

const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const

/** Tools with constant results, and schemas of arguments. */
export const results: { readonly tools: Readonly<Record<string, CallToolResult>>; readonly schemas: Readonly<Record<string, object>> } = {
  tools: {
    test_simple_text: { content: [{ type: 'text', text: 'This is a simple text response for testing.' }] },
    test_image_content: { content: [image] },
    test_audio_content: { content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] },
    test_embedded_resource: {
      content: [{ type: 'resource', resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' } }],
    },
    test_multiple_content_types: {
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        image,
        { type: 'resource', resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}' } },
      ],
    },
    test_error_handling: { isError: true, content: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }] },
    test_streaming_elicitation: { content: [{ type: 'text', text: 'no request' }] },
    json_schema_2020_12_tool: { content: [{ type: 'text', text: 'schema' }] },
  },
  schemas: {
    test_sampling: { properties: { prompt: { type: 'string' } }, required: ['prompt'] },
    test_elicitation: { properties: { message: { type: 'string' } }, required: ['message'] },
    json_schema_2020_12_tool: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
      properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' }, contactMethod: { enum: ['phone', 'email'] } },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  },
}

export const toolNames = [
  ...Object.keys(results.tools),
  'test_tool_with_logging',
  'test_tool_with_progress',
  'test_sampling',
  'test_elicitation',
  'test_elicitation_sep1034_defaults',
  'test_elicitation_sep1330_enums',
  'test_reconnection',
  'test_logging_tool',
  'test_missing_capability',
  'test_input_required_result_sampling',
  'test_input_required_result_list_roots',
  'test_trigger_tool_change',
  'test_trigger_prompt_change',
]

export const defaultsSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
}

const options = ['option1', 'option2', 'option3']
const titled = ['First', 'Second', 'Third'].map((title, index) => ({ const: `value${index + 1}`, title: `${title} Option` }))
export const enumSchema = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: titled },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', items: { anyOf: titled } },
  },
}
