import type { MessageTable } from './types.ts'

/** Problems of config files, and of messages of the config stream: PX30xx. */
export const configMessages = {
  PX3001: {
    title: 'config file cannot be read',
    cause: 'The config file does not exist, is a directory, or the process may not read it.',
    fix: 'Correct the path, or the permissions of the file.',
  },
  PX3002: {
    title: 'file is a Kubernetes manifest',
    cause: 'The file has apiVersion and kind. Config files have neither.',
    fix: 'Run the directory of the manifest instead: `make run DIR=...`.',
  },
  PX3003: {
    title: 'config file does not parse',
    cause: 'The file is not valid YAML or JSON, or holds several documents. The last valid version of the file stays in force.',
    fix: 'Correct the syntax at the line and column that the message names. Indentation counts in YAML; quote values that contain `: ` or `#`.',
  },
  PX3004: {
    title: 'placeholder cannot be replaced',
    cause: 'A placeholder such as `${NAME}` names a variable that is not set, or a file that cannot be read, or its value has the wrong type.',
    fix: 'Set the variable, or write a default: `${NAME:-default}`.',
  },
  PX3005: {
    title: 'unknown field',
    cause: 'A field is not part of the schema. Unknown fields are rejected, because a misspelt policy would otherwise be missing silently.',
    fix: 'Correct the name; the message lists the known fields. Indentation may have moved the field to another object.',
  },
  PX3006: {
    title: 'required field is missing',
    cause: 'An object lacks a field that it needs.',
    fix: 'Add the field. docs/reference/config.md describes each object.',
  },
  PX3007: {
    title: 'value is not allowed',
    cause: 'A value has the wrong type, is none of the allowed values, or is out of range; or fields are set together that exclude each other.',
    fix: 'Write a value that the message allows. Quote texts that YAML would read as numbers or booleans.',
  },
  PX3008: {
    title: 'settings contradict each other',
    cause:
      'The fields of the file are valid each by itself, and do not fit together: a name that is used twice, a reference to an object that is not in the file, settings of another protocol.',
    fix: 'Correct the field that the message names.',
  },
  PX3009: {
    title: 'certificate or key of the config file is not usable',
    cause: 'A file of a listener cannot be read, is not in PEM form, or the key does not belong to the certificate.',
    fix: 'Name a certificate chain and its unencrypted private key. The paths are relative to the config file.',
  },
  PX3010: {
    title: 'value cannot work',
    cause:
      'An expression, pattern, key set, user or API key cannot be read, an API key is short, expired or listed twice, or a policy refers to a destination that the file does not have. The file is used, and requests that need the value are rejected; a mirror gets none.',
    fix: 'Correct the value; the message names its problem.',
  },
  PX3011: {
    title: 'placeholder is not replaced',
    cause: 'The file is used together with XDS_ADDRESS, where placeholders are text, because others than the user of the process can write such a file.',
    fix: 'Write the value itself.',
  },
  PX3012: {
    title: 'source of a plugin cannot be read',
    cause:
      'The file of `source.file` cannot be read or is too long, or the config file is used together with XDS_ADDRESS, where no sources of plugins are read from files.',
    fix: 'Correct the path, which is relative to the config file, or the permissions of the file. In a cluster, name a ConfigMap in a ProxyPolicy.',
  },
  PX3015: {
    title: 'command is not run',
    cause: 'The file is used together with XDS_ADDRESS, and has an MCP target with `command`. Others than the user of the process can write such a file.',
    fix: 'Run the server elsewhere, and give the target its address.',
  },
  PX3016: {
    title: 'port without client authentication',
    cause:
      'A port of a config file listens on other addresses than loopback and admits every client. Its backends are models, MCP servers or others with a credential of the gateway, which all of them can use.',
    fix: 'Add `keys`, or another policy that authenticates clients, or list their addresses in `ipAllowList`. To use the port on this machine only, listen on 127.0.0.1.',
  },
} as const satisfies MessageTable

export type ConfigCode = keyof typeof configMessages
