/** Names of verified API keys (entries of the Secret, never the key) by the metadata of their entry; filled when the config is compiled. */
export const apiKeyNames = new WeakMap<object, string>()
