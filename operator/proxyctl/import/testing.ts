import { expect } from '@jest/globals'
import { parse } from 'yaml'
import { main } from '../proxyctl.ts'

export async function run(args: readonly string[], input: string) {
  let [stdout, stderr] = ['', '']
  const terminal = { env: {}, isTerminal: false, write: (text: string) => (stdout += text), writeError: (text: string) => (stderr += text) }
  const code = await main(args, { ...terminal, readInput: () => Promise.resolve(input) })
  return { code, stdout, stderr }
}

const compare = (a: string, b: string): number => (a < b ? -1 : 1)

/** Imports a config, checks that lint accepts the result, and returns it with the paths that were not carried over. */
export async function runImport(input: string) {
  const { code, stdout, stderr } = await run(['import', '-'], input)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  // Variables of the machine and files are not part of the test.
  const filled = stdout.replaceAll(/(?<!\$)\$\{file:[^}]*\}/g, 'keys').replaceAll(/(?<!\$)\$\{[A-Z_]+(?::-[^}]*)?\}/g, 'long-enough.example.com')
  const lint = await run(['lint', '-', '-o', 'json'], filled)
  const { findings } = JSON.parse(lint.stdout) as { findings: { severity: string; message: string }[] }
  expect(findings.filter(({ severity, message }) => severity === 'error' && !message.includes('inline: is not JSON'))).toEqual([])
  const lost = [...stdout.matchAll(/^# {3}(\S+): /gm)].map(([, path = '']) => path).toSorted(compare)
  return { text: stdout, config: parse(stdout) as unknown, lost }
}

export const rejectsAll = { authorization: { action: 'Deny', policy: { matchExpressions: ['true'] } } }

/** A config of LiteLLM. */
export const litellm = `
model_list:
  - model_name: gpt-4o
    litellm_params:
      model: openai/gpt-4o-2024-08-06
      api_key: os.environ/OPENAI_API_KEY
      temperature: 0.2
      rpm: 100
  - model_name: gpt-4o
    litellm_params: { model: azure/gpt-4o-eu, api_base: os.environ/AZURE_API_BASE, api_key: os.environ/AZURE_API_KEY, api_version: "2024-10-21" }
  - model_name: gpt-4o-azure
    litellm_params: { model: azure/gpt-4o-eu, api_base: os.environ/AZURE_API_BASE, api_key: os.environ/AZURE_API_KEY, api_version: "2024-10-21" }
    model_info: { mode: chat }
  - model_name: claude
    litellm_params: { model: claude-sonnet-4-5, api_key: "sk-ant-\${odd" }
  - model_name: sonnet-bedrock
    litellm_params: { model: bedrock/converse/anthropic.claude-sonnet-4-5, aws_region_name: us-east-1 }
  - model_name: gemini-pro
    litellm_params: { model: vertex_ai/gemini-2.5-pro, vertex_project: my-project, vertex_location: us-central1 }
  - model_name: llama
    litellm_params: { model: ollama/llama3.1, api_base: "http://localhost:11434" }
  - model_name: fast
    litellm_params: { model: groq/llama-3.3-70b-versatile, api_key: os.environ/GROQ_API_KEY }
  - model_name: "*"
    litellm_params: { model: "*" }
  - model_name: speech
    litellm_params: { model: elevenlabs/scribe_v1 }
litellm_settings:
  num_retries: 2
  request_timeout: 30
  drop_params: true
  fallbacks: [{ gpt-4o: [claude] }]
router_settings: { routing_strategy: least-busy }
general_settings:
  master_key: os.environ/LITELLM_MASTER_KEY
  database_url: os.environ/DATABASE_URL
mcp_servers:
  github_mcp: { url: "https://api.githubcopilot.com/mcp", transport: http, auth_type: bearer_token, auth_value: os.environ/GITHUB_TOKEN }
  files: { transport: stdio, command: npx, args: [-y, server-filesystem] }
`
