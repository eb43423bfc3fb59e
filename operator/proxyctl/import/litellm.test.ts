import { PRESET_NAMES, presets } from '#api/llm-presets.ts'
import { describe, expect, test } from '@jest/globals'
import { harmlessSettings, keyStores, switches } from './litellm-settings.ts'
import { litellm, rejectsAll, run, runImport } from './testing.ts'

const failures = ['RateLimit', 'Quota', 'Overloaded', 'Timeout', 'ServerError', 'FirstToken', 'Unreachable', 'Auth', 'ModelNotFound', 'Budget']
const health = {
  unhealthyCondition: 'response.code in [401, 402, 404, 408, 429] || response.code >= 500',
  eviction: { duration: '5000ms', consecutiveFailures: 3 },
}

describe('import of LiteLLM proxy', () => {
  test('carries models, keys, retries and MCP servers over, and lists the rest', async () => {
    const { config, lost, text } = await runImport(litellm)
    expect(config).toEqual({
      llm: {
        models: {
          'gpt-4o': {
            to: [
              { model: 'gpt-4o-1', weight: 100 },
              { model: 'gpt-4o-2', weight: 0 },
            ],
            by: 'LeastBusy',
            fallback: [
              {
                on: failures,
                to: [
                  { model: 'gpt-4o-1', weight: 100 },
                  { model: 'gpt-4o-2', weight: 0 },
                ],
              },
              { on: failures, to: [{ model: 'claude' }] },
            ],
          },
          'gpt-4o-1': {
            openai: { model: 'gpt-4o-2024-08-06', apiKey: '${OPENAI_API_KEY}' },
            policies: { ai: { defaults: [{ field: 'temperature', value: 0.2 }] }, health },
            visibility: 'Internal',
          },
          'gpt-4o-2': {
            azureOpenAI: { endpoint: '${AZURE_API_BASE}', deploymentName: 'gpt-4o-eu', apiVersion: '2024-10-21', apiKey: '${AZURE_API_KEY}' },
            policies: { health },
            visibility: 'Internal',
          },
          'gpt-4o-azure': { azureOpenAI: { endpoint: '${AZURE_API_BASE}', deploymentName: 'gpt-4o-eu', apiVersion: '2024-10-21', apiKey: '${AZURE_API_KEY}' } },
          claude: { anthropic: { model: 'claude-sonnet-4-5', apiKey: 'sk-ant-$${odd' } },
          'sonnet-bedrock': { bedrock: { model: 'anthropic.claude-sonnet-4-5', region: 'us-east-1' } },
          'gemini-pro': { vertexAI: { model: 'gemini-2.5-pro', projectId: 'my-project', region: 'us-central1' } },
          llama: { preset: { name: 'ollama', model: 'llama3.1', url: 'http://localhost:11434' } },
          fast: { preset: { name: 'groq', model: 'llama-3.3-70b-versatile', apiKey: '${GROQ_API_KEY}' } },
        },
        policies: {
          apiKeyAuthentication: { secretRef: { secret: 'opaque/default/clients' } },
          budgets: [
            {
              name: 'models-1',
              key: 'llm.target',
              models: 'has(llm.target) && llm.target in ["default/llm.gpt-4o-1"]',
              limits: [{ requests: 100, window: '1m' }],
            },
          ],
          retry: { attempts: 2, codes: [429, 500, 502, 503, 504] },
          timeouts: { request: '30000ms' },
        },
      },
      mcp: {
        policies: { apiKeyAuthentication: { secretRef: { secret: 'opaque/default/clients' } } },
        'github-mcp': { url: 'https://api.githubcopilot.com/mcp', apiKey: '${GITHUB_TOKEN}' },
        files: { command: ['npx', '-y', 'server-filesystem'], inheritEnv: true },
      },
      secrets: [{ key: 'opaque/default/clients', type: 'opaque', data: { master: '${LITELLM_MASTER_KEY}' } }],
    })
    expect(lost).toEqual(['general_settings.database_url', 'litellm_settings.drop_params', 'model_list[2].model_info.mode', 'model_list[8]', 'model_list[9]'])
    expect(text).toMatch(/^# {3}model_list\[8\]: is a pattern; /m)
  })

  test('rejects all requests where guardrails or authentication are not carried over', async () => {
    const models = 'model_list: [{ model_name: a, litellm_params: { model: gpt-4o } }]\n'
    for (const more of ['guardrails: [{ guardrail_name: a }]', 'general_settings: { enable_jwt_auth: true }']) {
      const { config } = await runImport(models + more)
      expect(config).toMatchObject({ llm: { policies: { authorization: { action: 'Deny', policy: { matchExpressions: ['true'] } } } } })
    }
  })
})

test.each<[model: string, more: object, expected: object | undefined]>([
  ...PRESET_NAMES.flatMap((name) =>
    (presets[name].litellm ?? []).map((prefix): [string, object, object] => [
      `${prefix}/m`,
      { api_base: 'http://h:1/v1' },
      { preset: { name, model: name === 'fireworks' ? 'accounts/fireworks/models/m' : 'm', url: 'http://h:1/v1' } },
    ]),
  ),
  ['fireworks_ai/accounts/a/models/m', {}, { preset: { name: 'fireworks', model: 'accounts/a/models/m' } }],
  ['huggingface/together/org/m', {}, { preset: { name: 'huggingface', model: 'org/m:together' } }],
  ['huggingface/org/m', {}, { preset: { name: 'huggingface', model: 'org/m' } }],
  ['ollama/m', {}, { preset: { name: 'ollama', model: 'm' } }],
  ['hosted_vllm/m', {}, undefined],
  ['m', { custom_llm_provider: 'groq' }, { preset: { name: 'groq', model: 'm' } }],
])('the model %s of LiteLLM with %j is that of a preset', async (model, more, expected) => {
  const list = [
    { model_name: 'a', litellm_params: { model, ...more } },
    { model_name: 'b', litellm_params: { model: 'gpt-4o' } },
  ]
  const { config, lost } = await runImport(JSON.stringify({ model_list: list }))
  expect((config as { llm: { models: object } }).llm.models).toEqual({ ...(expected && { a: expected }), b: { openai: { model: 'gpt-4o' } } })
  expect(lost).toEqual(expected === undefined ? ['model_list[0]'] : [])
})

describe('a setting that may protect something and is not carried over closes what it protected', () => {
  const files = {
    model_list: [{ model_name: 'a', litellm_params: { model: 'gpt-4o' }, model_info: {} }],
    mcp_servers: { wiki: { url: 'https://a.example/mcp', transport: 'http' } },
  }
  type Files = typeof files
  /** Where each section of LiteLLM's config has a setting, and what its loss closes. */
  const sections: Readonly<Record<string, { readonly closes: readonly string[]; add(config: Files, setting: object): unknown }>> = {
    file: { closes: ['llm', 'mcp'], add: (config, setting) => Object.assign(config, setting) },
    general_settings: { closes: ['llm', 'mcp'], add: (config, setting) => Object.assign(config, { general_settings: setting }) },
    litellm_settings: { closes: ['llm', 'mcp'], add: (config, setting) => Object.assign(config, { litellm_settings: setting }) },
    router_settings: { closes: ['llm', 'mcp'], add: (config, setting) => Object.assign(config, { router_settings: setting }) },
    litellm_params: { closes: ['llm'], add: (config, setting) => Object.assign(config.model_list[0]?.litellm_params ?? {}, setting) },
    model_info: { closes: ['llm'], add: (config, setting) => Object.assign(config.model_list[0]?.model_info ?? {}, setting) },
    mcp_servers: { closes: ['mcp'], add: (config, setting) => Object.assign(config.mcp_servers.wiki, setting) },
  }
  async function importWith(section: string, setting: object) {
    const input = structuredClone(files)
    sections[section]?.add(input, setting)
    const { config, lost } = await runImport(JSON.stringify(input))
    const closed = Object.entries(config as Record<string, { policies?: object }>).flatMap(([name, { policies }]) =>
      policies !== undefined && 'authorization' in policies ? [name] : [],
    )
    return { config, closed, lost }
  }

  /** Settings of LiteLLM that admit, limit, hide or check something, from its documentation and types. */
  const protective: Readonly<Record<string, string>> = {
    file: 'guardrails policies policy_attachments prompts callback_settings environment_variables',
    general_settings: `admin_only_routes allowed_ips allowed_routes apply_user_budget_to_team_keys control_plane_url custom_auth custom_sso default_team_disabled
      enable_jwt_auth enable_oauth2_auth enable_oauth2_proxy_auth enforce_user_param enforced_params global_max_parallel_requests
      infer_model_from_keys litellm_jwtauth litellm_key_header_name max_batch_file_size_mb max_parallel_requests max_request_size_mb max_response_size_mb
      mcp_internal_ip_ranges mcp_required_fields mcp_trusted_proxy_ranges mcp_xff_num_trusted_hops oauth2_config_mappings provider_url_destination_allowed_hosts
      public_routes reject_clientside_metadata_tags service_account_settings trusted_proxy_ranges use_x_forwarded_for user_url_allowed_hosts user_url_validation`,
    litellm_settings: `banned_keywords_list blocked_user_list budget_duration default_internal_user_params default_key_generate_params default_team_params
      default_team_settings key_generation_settings max_budget max_end_user_budget max_internal_user_budget priority_reservation public_model_groups
      redact_messages_in_exceptions redact_user_api_key_info ssl_verify turn_off_message_logging upperbound_key_generate_params`,
    router_settings: `default_litellm_params default_max_parallel_requests enable_pre_call_checks enable_tag_filtering guardrail_list optional_pre_call_checks
      provider_budget_config tag_filtering_match_any tag_routing_prefix`,
    litellm_params: `budget_duration default_api_key_rpm_limit default_api_key_tpm_limit extra_body extra_headers guardrails itpm litellm_credential_name
      max_budget max_file_size_mb max_parallel_requests mock_response otpm safety_settings tag_regex tags`,
    model_info: 'access_groups access_windows allow_fail_open blocked enable_tag_filtering team_id team_public_model_name tier',
    mcp_servers: `access_groups allowed_params allowed_tools auth available_on_public_internet disallowed_tools is_byok oauth2_flow scopes static_headers
      token_validation`,
  }
  const split = (text: string): string[] => text.trim().split(/\s+/)
  const values: readonly unknown[] = [true, 1, 'a', ['a'], { a: 1 }]
  const valueOf = (name: string): unknown => values[name.length % values.length]

  test.each(Object.entries(protective).flatMap(([section, text]) => [...split(text), 'a_setting_of_a_later_version'].map((name) => [section, name] as const)))(
    '%s of LiteLLM: %s',
    async (section, name) => {
      const { closed, lost } = await importWith(section, { [name]: valueOf(name) })
      expect(closed).toEqual(sections[section]?.closes)
      expect(lost).toEqual([expect.stringContaining(name)])
    },
  )

  test.each([
    ['general_settings', { custom_auth: 'my.auth' }],
    ['litellm_settings', { callbacks: ['lakera_prompt_injection'] }],
    ['litellm_settings', { callbacks: 'my_handler.instance' }],
    ['litellm_params', { rpm: 0 }],
    ['litellm_params', { tpm: 1.5 }],
    ['litellm_params', { rpm: 'os.environ/RPM' }],
    ['mcp_servers', { auth_type: 'oauth2' }],
    ...keyStores.map((name) => ['general_settings', { [name]: 'a' }] as const),
  ])('%s of LiteLLM: %j', async (section, setting) => {
    expect((await importWith(section, setting)).closed).toEqual(sections[section]?.closes)
  })
})

describe('a setting of LiteLLM whose loss opens nothing is listed and closes nothing', () => {
  const closed = 'matchExpressions'
  const importText = async (input: object): Promise<string> =>
    (await runImport(JSON.stringify({ model_list: [{ model_name: 'a', litellm_params: { model: 'gpt-4o' } }], ...input }))).text

  test.each(Object.entries(harmlessSettings).flatMap(([section, names]) => names.map((name) => [section, name.replace('*', 'x')] as const)))(
    '%s: %s',
    async (section, name) => {
      const setting = { [name]: 'a' }
      const inModel = (part: object): object => ({ model_list: [{ model_name: 'a', litellm_params: { model: 'gpt-4o' }, ...part }] })
      const inputs: Readonly<Record<string, object>> = {
        file: setting,
        litellm_params: inModel({ litellm_params: { model: 'gpt-4o', ...setting } }),
        model_info: inModel({ model_info: setting }),
        mcp_servers: { mcp_servers: { wiki: { url: 'https://a.example/mcp', ...setting } } },
      }
      const text = await importText(inputs[section] ?? { [section]: setting })
      expect(text).not.toContain(closed)
      expect(text).toContain(`${name}: `)
    },
  )

  test.each(Object.entries(switches).flatMap(([section, names]) => names.map((name) => [section, name] as const)))('%s: %s: false', async (section, name) => {
    expect(await importText({ [section]: { [name]: false } })).not.toContain(closed)
  })

  test.each(keyStores)('general_settings: %s beside a master key', async (name) => {
    expect(await importText({ general_settings: { [name]: 'a', master_key: 'os.environ/KEY' } })).not.toContain(closed)
  })

  test('environment_variables that the file uses', async () => {
    const models = [{ model_name: 'a', litellm_params: { model: 'gpt-4o', api_key: 'os.environ/A_KEY' } }]
    expect(await importText({ model_list: models, environment_variables: { A_KEY: 'k' } })).not.toContain(closed)
    expect(await importText({ model_list: models, environment_variables: { A_KEY: 'k', LITELLM_MASTER_KEY: 'k' } })).toContain(closed)
  })
})

describe('import of LiteLLM', () => {
  test('carries the limits of models over as budgets, up to 16 different ones', async () => {
    const model = (index: number, limits: object) => ({ model_name: `m${index}`, litellm_params: { model: 'gpt-4o', ...limits } })
    const budgetsOf = async (models: object[]) => {
      const { config } = await runImport(JSON.stringify({ model_list: models }))
      return (config as { llm: { policies: { budgets: object[] } } }).llm.policies
    }
    const shared = await budgetsOf(Array.from({ length: 64 }, (_, index) => model(index, { rpm: 10, tpm: 1000 + (index % 2) })))
    expect(shared).toEqual({
      budgets: [0, 1].map((rest) => ({
        name: `models-${rest + 1}`,
        key: 'proxy.route.name',
        models: `proxy.route.name in ${JSON.stringify(Array.from({ length: 32 }, (_, index) => `llm.m${2 * index + rest}`))}`,
        limits: [
          { requests: 10, window: '1m' },
          { tokens: 1000 + rest, window: '1m' },
        ],
      })),
    })
    expect(await budgetsOf(Array.from({ length: 16 }, (_, index) => model(index, { rpm: index + 1 })))).not.toMatchObject(rejectsAll)
    expect(await budgetsOf(Array.from({ length: 17 }, (_, index) => model(index, { rpm: index + 1 })))).toMatchObject(rejectsAll)
  })

  test('fails for a file that includes others', async () => {
    for (const more of [{}, { model_list: [{ model_name: 'a', litellm_params: { model: 'gpt-4o' } }] }]) {
      const { code, stdout, stderr } = await run(['import', '-'], JSON.stringify({ include: ['models.yaml'], ...more }))
      expect({ code, stdout, stderr }).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/include names files .*copy their content into this file/),
      })
    }
  })

  test.each(['policies', 'Port', 'tls', 'A.b', '__'])('leaves out an MCP server whose name another one or the section has: %s', async (name) => {
    const url = 'https://a.example/mcp'
    const { config, lost } = await runImport(JSON.stringify({ mcp_servers: { 'a.b': { url }, [name]: { url: 'https://b.example', command: 'x' } } }))
    expect(config).toEqual({ mcp: { 'a.b': { url } } })
    expect(lost).toEqual([`mcp_servers.${name}`])
  })
})
