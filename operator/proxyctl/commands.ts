import type { CommandEntry } from './types.ts'
import type { OptionName } from './options.ts'

/** Options that choose a data plane. */
const target: readonly OptionName[] = ['admin', 'gateway', 'kubeconfig', 'namespace']

/** Every command, in the order of the help. */
export const commands: readonly CommandEntry[] = [
  {
    name: 'status',
    summary: 'Lists all resources of the gateway, the worst condition first',
    details: 'Exit status 1 if a resource has an error. On a cluster, the pods of each Gateway are checked too.',
    options: ['dir', 'namespace', 'kubeconfig'],
    examples: [
      ['All resources of the cluster', 'proxyctl status'],
      ['Resources of one namespace', 'proxyctl status -n shop'],
      ['The statuses that manifests would get', 'proxyctl status --dir manifests/'],
    ],
    load: async () => (await import('./live/status.ts')).runStatus,
  },
  {
    name: 'doctor',
    summary: 'Checks a cluster: CRDs, versions, certificates, data planes, statuses, and says what to do first',
    details: 'The checks are in the order in which they depend on each other. What the user may not read is left out. Exit status 1 if a check failed.',
    options: ['namespace', 'kubeconfig'],
    examples: [
      ['The whole cluster', 'proxyctl doctor'],
      ['Certificates and statuses of one namespace', 'proxyctl doctor -n shop'],
    ],
    load: async () => (await import('./live/doctor.ts')).runDoctor,
  },
  {
    name: 'get',
    arguments: 'KIND [NAMESPACE/NAME]',
    summary: 'Lists routes, policies, backends or gateways with what holds for each',
    details:
      'Shows what each object is attached to and its conditions. -o wide adds hostnames and messages. For one route, also the policy fields in force, which the data plane reports.',
    options: [...target, 'dir'],
    examples: [
      ['All routes with their Gateways', 'proxyctl get routes'],
      ['One route with the policies in force', 'proxyctl get routes default/shop'],
      ['Policies of one namespace with their targets', 'proxyctl get policies -n shop -o wide'],
      ['Backends of manifests as YAML', 'proxyctl get backends --dir manifests/ -o yaml'],
    ],
    completes: ['routes', 'policies', 'backends', 'gateways'],
    load: async () => (await import('./live/get.ts')).runGet,
  },
  {
    name: 'explain',
    arguments: 'ROUTE|CODE',
    summary: 'Shows every policy field in force for a route, its source and what it overrides; or cause and fix of a message',
    details: 'ROUTE is <namespace>/<name>, CODE that of a message, such as PX1012.',
    options: target,
    examples: [
      ['A route of the cluster', 'proxyctl explain default/shop'],
      ['A route of a standalone gateway', 'proxyctl explain default/shop --admin 127.0.0.1:15000'],
      ['The cause of a message and how to correct it', 'proxyctl explain PX1207'],
    ],
    load: async () => (await import('./live/explain.ts')).runExplain,
  },
  {
    name: 'trace',
    arguments: '[URL | -- PROGRAM ARGUMENTS]',
    summary: 'Shows the steps of one request',
    details:
      'With URL, sends the request. With PROGRAM, runs it and traces its request; curl, wget and grpcurl get a header that marks the request, and their output goes to standard error. Otherwise waits for the next request that matches.',
    options: [...target, 'path', 'host', 'method', 'header', 'timeout'],
    examples: [
      ['Send a request', "proxyctl trace http://localhost:8080/shop --header 'x-user: bob'"],
      ['Trace the request of curl', 'proxyctl trace -- curl -X POST -d @order.json http://localhost:8080/orders'],
      ['Wait for the next request of a client', 'proxyctl trace --host shop.example --path /cart --timeout 5m'],
    ],
    load: async () => (await import('./live/trace.ts')).runTrace,
  },
  {
    name: 'console',
    summary: 'Serves the console on this machine and opens the browser',
    details:
      'On a cluster, forwards to the pods of the Gateway and shows their numbers as one, with the statuses that you may read. Pods that come and go are followed. Runs until it is interrupted.',
    options: [...target, 'port', 'no-open'],
    examples: [
      ['The console of a Gateway', 'proxyctl console --gateway default/web'],
      ['At a fixed address, without a browser', 'proxyctl console --gateway default/web --port 8901 --no-open'],
    ],
    load: async () => (await import('./console.ts')).runConsole,
  },
  {
    name: 'diff',
    arguments: '-f FILE|DIR|-',
    summary: 'Shows what manifests would change in the config of each Gateway, before they are applied',
    details:
      'Translates the objects of the cluster with and without the manifests, and lists the messages of each Gateway that differ, problems that statuses would report, and those that are solved. Nothing is written. Credentials are redacted. Exit status as diff: 0 no difference, 1 a difference, 2 a failure.',
    options: ['filename', 'namespace', 'kubeconfig'],
    isComparison: true,
    examples: [
      ['A directory of manifests', 'proxyctl diff -f manifests/'],
      ['Rendered manifests', 'kustomize build overlays/prod | proxyctl diff -f -'],
    ],
    load: async () => (await import('./live/diff.ts')).runDiff,
  },
  {
    name: 'config dump',
    summary: 'Prints the config that a data plane has in force',
    options: target,
    examples: [['Save the config', 'proxyctl config dump --gateway shop/gw > config.json']],
    load: async () => (await import('./live/config.ts')).runConfigDump,
  },
  {
    name: 'config diff',
    arguments: 'FROM [TO]',
    summary: 'Compares two configs: dump files, data planes (host:port) or directories of manifests',
    details: 'Without TO, compares with the data plane. Exit status as diff: 0 no difference, 1 a difference, 2 a failure.',
    options: target,
    isComparison: true,
    examples: [
      ['Is the data plane running the config of these manifests?', 'proxyctl config diff manifests/ -n shop'],
      ['What changed between two dumps?', 'proxyctl config diff yesterday.json today.json'],
    ],
    completes: 'files',
    load: async () => (await import('./live/config.ts')).runConfigDiff,
  },
  {
    name: 'config expand',
    arguments: 'FILE',
    summary: 'Prints a config file in the long form, with real names and placeholders',
    details:
      'The long form has the same effect. Short forms are replaced by the ports, routes, backends, secrets and policies that they stand for. FILE may be - for standard input.',
    examples: [['What does this file stand for?', 'proxyctl config expand gateway.yaml']],
    completes: 'files',
    load: async () => (await import('./files/lint.ts')).runConfigExpand,
  },
  {
    name: 'config init',
    summary: 'Writes a config file from the answers to five questions',
    details:
      'Questions without an option are asked on a terminal; otherwise standard input has an answer on each line, and an empty one is the default. Keys of clients are printed once, the file has their digests.',
    options: ['provider', 'model', 'listen', 'clients', 'mcp', 'out'],
    examples: [
      ['Answer the questions', 'proxyctl config init'],
      [
        'Without questions',
        'proxyctl config init --provider openai --model gpt-5 --listen 127.0.0.1:4000 --clients alice,bob --mcp https://mcp.example.com/mcp',
      ],
    ],
    load: async () => (await import('./files/init.ts')).runConfigInit,
  },
  {
    name: 'log level',
    arguments: '[LEVEL]',
    summary: 'Shows or sets the log level of a data plane',
    details: 'LEVEL is error, warn, info, debug or trace, for all modules or as module=level, separated by commas.',
    options: target,
    examples: [
      ['Show the level', 'proxyctl log level --gateway shop/gw'],
      ['Log more of two modules', 'proxyctl log level info,routing=debug,upstream=trace'],
    ],
    completes: ['error', 'warn', 'info', 'debug', 'trace'],
    load: async () => (await import('./live/config.ts')).runLog,
  },
  {
    name: 'mcp diff',
    summary: 'Compares the tools of MCP servers with their pins',
    details:
      'Shows tools that are new, changed or gone, and those with hidden characters or instructions in their definitions. Characters that cannot be seen are printed as escapes. Exit status 1 if there is any, 2 for a failure. Servers are called directly.',
    options: ['server', 'pins', 'header'],
    isComparison: true,
    examples: [
      ['The tools of a server', 'proxyctl mcp diff --server tickets=http://localhost:9001/mcp'],
      [
        'Several servers, with a credential',
        "proxyctl mcp diff --pins pins.json --server a=https://a.example/mcp --server b=https://b.example/mcp --header 'Authorization: Bearer ...'",
      ],
    ],
    load: async () => (await import('./mcp.ts')).runMcpDiff,
  },
  {
    name: 'mcp approve',
    arguments: '[TARGET/TOOL...]',
    summary: 'Writes the pins of tools of MCP servers',
    details:
      'Without arguments, all tools of the servers are approved, except those with hidden characters or instructions in their definitions, which must be named, and pins of tools that are gone are removed.',
    options: ['server', 'pins', 'header'],
    examples: [
      ['All tools of a server', 'proxyctl mcp approve --server tickets=http://localhost:9001/mcp'],
      ['One tool', 'proxyctl mcp approve tickets/search --server tickets=http://localhost:9001/mcp'],
    ],
    load: async () => (await import('./mcp.ts')).runMcpApprove,
  },
  {
    name: 'keys create',
    arguments: 'NAME',
    summary: 'Creates an API key, and prints the Secret with its digest or writes it',
    details: 'The key is shown once. Without --write, standard output is a manifest, and the key is on standard error.',
    options: ['secret', 'metadata', 'expires', 'write', 'namespace', 'kubeconfig'],
    examples: [
      ['A key of a team, into the Secret', 'proxyctl keys create alice --secret shop/keys --metadata team=red --expires 90d --write'],
      ['The manifest, for Git', 'proxyctl keys create alice --secret shop/keys --metadata \'models=["gpt-*"]\' > alice.yaml'],
    ],
    load: async () => (await import('./live/keys.ts')).runKeysCreate,
  },
  {
    name: 'keys list',
    summary: 'Lists the API keys of a Secret with their state and metadata',
    details: 'Keys themselves are not shown. Exit status 1 if an entry is not usable.',
    options: ['secret', 'namespace', 'kubeconfig'],
    examples: [['The keys of a Secret', 'proxyctl keys list --secret shop/keys']],
    load: async () => (await import('./live/keys.ts')).runKeysList,
  },
  {
    name: 'keys revoke',
    arguments: 'NAME',
    summary: 'Removes an API key from a Secret, or prints the command that does',
    options: ['secret', 'write', 'namespace', 'kubeconfig'],
    examples: [['Remove a key', 'proxyctl keys revoke alice --secret shop/keys --write']],
    load: async () => (await import('./live/keys.ts')).runKeysRevoke,
  },
  {
    name: 'lint',
    arguments: 'DIR|FILE|-',
    summary: 'Checks manifests or a config file without a cluster',
    details: 'Reports what the API server, the operator and the data plane would. - reads standard input. Exit status 1 if there is an error.',
    options: ['namespace', 'expand'],
    examples: [
      ['A directory of manifests', 'proxyctl lint manifests/'],
      ['A config file', 'proxyctl lint gateway.yaml'],
      ['The long form of a config file', 'proxyctl lint gateway.yaml --expand'],
      ['Rendered manifests', 'kustomize build overlays/prod | proxyctl lint -'],
    ],
    completes: 'files',
    load: async () => (await import('./files/lint.ts')).runLint,
  },
  {
    name: 'import',
    arguments: 'FILE|-',
    summary: 'Converts the config of LiteLLM proxy or agentgateway to a config file',
    details:
      'Prints the config file, preceded by comments that list the settings which could not be carried over. Authentication that cannot be carried over is replaced by a rule that rejects all requests.',
    options: ['from'],
    examples: [
      ['Convert the config of LiteLLM proxy', 'proxyctl import litellm/config.yaml > gateway.yaml'],
      ['Convert the config of agentgateway', 'proxyctl import --from agentgateway config.yaml'],
    ],
    completes: 'files',
    load: async () => (await import('./import.ts')).runImport,
  },
  {
    name: 'plugin init',
    arguments: 'DIR',
    summary: 'Writes a plugin in TypeScript, and manifests of a gateway that runs it',
    details: 'Existing files are not replaced.',
    examples: [['A directory for `make run DIR=tenants`', 'proxyctl plugin init tenants']],
    completes: 'files',
    load: async () => (await import('./plugin.ts')).runPluginInit,
  },
  {
    name: 'plugin build',
    arguments: 'FILE [NAME]',
    summary: 'Checks the source of a plugin, bundles the modules that it imports, and prints its ConfigMap',
    details:
      'NAME is that of the ConfigMap; default the directory of the file. Modules of npm and other files are bundled with the esbuild that is installed next to the plugin. --types needs typescript and the package of `plugin package` there; the nearest tsconfig.json has the options.',
    options: ['out', 'types', 'namespace'],
    examples: [
      ['The ConfigMap of a plugin', 'proxyctl plugin build tenants/index.ts | kubectl apply -n shop -f -'],
      ['With a check of its types', 'proxyctl plugin build --types tenants/index.ts'],
      ['A file that a standalone gateway watches', 'proxyctl plugin build tenants/index.ts --out tenants/plugin.yaml'],
    ],
    completes: 'files',
    load: async () => (await import('./plugin.ts')).runPluginBuild,
  },
  {
    name: 'plugin dev',
    arguments: 'FILE [NAME]',
    summary: 'Builds a plugin whenever its source changes, for a gateway that runs',
    details:
      'Writes the ConfigMap to plugin.yaml beside the source, or to --out. A directory of `make run` and a gateway with a config file load it at once. With --out FILE.js it is one module, for `source.file`. A source with an error leaves the file as it is. Runs until it is interrupted.',
    options: ['out', 'types', 'namespace'],
    examples: [
      ['Beside `make run DIR=tenants`', 'proxyctl plugin dev tenants/index.ts'],
      ['For a config file with `source: { file: tenants.js }`', 'proxyctl plugin dev tenants/index.ts --out tenants.js'],
    ],
    completes: 'files',
    load: async () => (await import('./plugin.ts')).runPluginDev,
  },
  {
    name: 'plugin test',
    arguments: '[DIR|FILE...]',
    summary: 'Runs the tests of plugins',
    details:
      'Runs files *.test.ts with the test runner of Node; default those below the working directory. They can import @proxy/plugin/testing, which sends requests through a plugin without a gateway. Exit status 1 if a test fails.',
    examples: [
      ['The tests of a directory', 'proxyctl plugin test tenants'],
      ['One file', 'proxyctl plugin test tenants/index.test.ts'],
    ],
    completes: 'files',
    load: async () => (await import('./plugin.ts')).runPluginTest,
  },
  {
    name: 'plugin bench',
    arguments: 'FILE',
    summary: 'Measures the time that a plugin adds to a request',
    details: 'Sends requests through the plugin on this machine, without sockets, in process and in a worker thread. The plugin runs with your rights.',
    options: ['config', 'header', 'method', 'duration'],
    examples: [['A plugin with its config', `proxyctl plugin bench tenants/index.ts --config '{"tenants":["a"]}' --header 'x-tenant: a'`]],
    completes: 'files',
    load: async () => (await import('./plugin.ts')).runPluginBench,
  },
  {
    name: 'plugin package',
    arguments: 'DIR',
    summary: 'Writes the npm package @proxy/plugin: types for editors, and the helper of tests',
    details: 'Existing files are replaced.',
    examples: [['Install it for editors and Jest', 'proxyctl plugin package sdk && npm install --save-dev ./sdk']],
    completes: 'files',
    load: async () => (await import('./plugin.ts')).runPluginPackage,
  },
  {
    name: 'spend',
    summary: 'Sums requests, tokens and cost of the ledger by user, team, model and other dimensions',
    details:
      'Adds up the ledgers of all pods of a Gateway; --file reads the file of one. Dimensions: gateway, route, protocol, key, user, team, provider, model, requestedModel, operation, target, tool, status, reason, guard, budget, hour, day, month. -o csv prints comma-separated values, -o table is the default, -o wide adds columns.',
    options: [...target, 'by', 'since', 'until', 'file'],
    formats: ['table', 'csv'],
    examples: [
      ['Cost of the last week by model', 'proxyctl spend'],
      ['By team and model, for a spreadsheet', 'proxyctl spend --by team,model --since 30d -o csv'],
      ['Days of one month from a file', 'proxyctl spend --file ledger.db --by day --since 2027-01-01 --until 2027-02-01'],
    ],
    load: async () => (await import('./live/spend.ts')).runSpend,
  },
  {
    name: 'models compare',
    arguments: 'NAME',
    summary: 'Reports how responses of a model and of its shadow differ, as Markdown',
    details:
      'Reads the comparisons of a request log in SQLite: latency, first token, tokens, cost, stop reasons, calls of tools, JSON, similarity and verdicts, with intervals of 95 %, and the greatest differences one by one. -o md is the default.',
    options: ['since', 'until', 'file'],
    formats: ['md'],
    examples: [
      ['A report of the last week', 'proxyctl models compare assistant --file ledger.db'],
      ['For another program', 'proxyctl models compare assistant --file ledger.db --since 30d -o json'],
    ],
    load: async () => (await import('./live/compare.ts')).runModelsCompare,
  },
  {
    name: 'version',
    summary: 'Prints the versions of proxyctl, the operator and the data planes',
    options: ['client', 'kubeconfig'],
    examples: [
      ['All versions', 'proxyctl version'],
      ['Only that of proxyctl', 'proxyctl version --client'],
    ],
    load: async () => (await import('./version.ts')).runVersion,
  },
  {
    name: 'completion',
    arguments: 'bash|zsh|fish',
    summary: 'Prints a completion script for a shell',
    examples: [
      ['bash, in ~/.bashrc', 'source <(proxyctl completion bash)'],
      ['zsh, in ~/.zshrc after compinit', 'source <(proxyctl completion zsh)'],
      ['fish', 'proxyctl completion fish > ~/.config/fish/completions/proxyctl.fish'],
    ],
    completes: ['bash', 'zsh', 'fish'],
    load: async () => (await import('./completion.ts')).runCompletion,
  },
]

/** The command that the first words name, and the number of its words. */
export function findCommand([first = '', second = '']: readonly string[]): { readonly entry: CommandEntry; readonly words: number } | undefined {
  for (const [words, name] of [
    [2, `${first} ${second}`],
    [1, first],
  ] as const) {
    const entry = commands.find((each) => each.name === name)
    if (entry) return { entry, words }
  }
  return undefined
}
