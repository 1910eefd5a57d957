// health says of Kubernetes objects what tools that wait for health make of them: kstatus (Flux, kubectl
// apply of cli-utils), and Argo CD by a health check in Lua, with the interpreter that Argo CD has.
//
//	health [LUA-FILE] <objects
//
// Objects are JSON, one after the other. A line of JSON for each: {"kstatus": …, "message": …, "argo": …,
// "argoMessage": …}; without a file, the last two are empty.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type verdict struct {
	Kstatus     string `json:"kstatus"`
	Message     string `json:"message"`
	Argo        string `json:"argo"`
	ArgoMessage string `json:"argoMessage"`
}

func main() {
	if len(os.Args) > 2 {
		fmt.Fprintln(os.Stderr, "usage: health [LUA-FILE] <objects")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	var script []byte
	for _, file := range files {
		var err error
		if script, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var text json.RawMessage
		if err := in.Decode(&text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		object := map[string]interface{}{}
		if err := k8sjson.Unmarshal(text, &object); err != nil { // whole numbers as int64, which kstatus wants
			return err
		}
		found, err := judge(object, script)
		if err != nil {
			return err
		}
		if err := out.Encode(found); err != nil {
			return err
		}
	}
}

func judge(object map[string]interface{}, script []byte) (verdict, error) {
	computed, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		return verdict{}, err
	}
	found := verdict{Kstatus: computed.Status.String(), Message: computed.Message}
	if len(script) > 0 {
		found.Argo, found.ArgoMessage, err = byScript(object, string(script))
	}
	return found, err
}

// As Argo CD calls it: the object is the global obj, few libraries are there, and a table comes back.
func byScript(object map[string]interface{}, script string) (string, string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		if err := state.CallByParam(
			lua.P{Fn: state.NewFunction(library.open), NRet: 0, Protect: true}, lua.LString(library.name)); err != nil {
			return "", "", err
		}
	}
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("the script returned a %s, not a table", state.Get(-1).Type())
	}
	return answer.RawGetString("status").String(), answer.RawGetString("message").String(), nil
}

func value(state *lua.LState, from interface{}) lua.LValue {
	switch typed := from.(type) {
	case bool:
		return lua.LBool(typed)
	case int64:
		return lua.LNumber(typed)
	case float64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []interface{}:
		list := state.CreateTable(len(typed), 0)
		for _, item := range typed {
			list.Append(value(state, item))
		}
		return list
	case map[string]interface{}:
		table := state.CreateTable(0, len(typed))
		for key, item := range typed {
			table.RawSetString(key, value(state, item))
		}
		return table
	}
	return lua.LNil
}
